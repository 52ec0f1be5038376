"""Probes of the layers: states of every word, from the embeddings up, of a network that reads words only."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.experiments import grammar, layers
from nextword.experiments.learners import train_tagger
from nextword.experiments.small import Count


@pytest.fixture(scope="module")
def tagger():
    learned = [layers.next_words(each) for each in grammar.reviews(60, 0)]
    events = train_tagger("lstm", learned, 0, {**layers.SMALL, "train.steps": 3}, Count())
    while True:
        try:
            next(events)
        except StopIteration as end:
            return end.value


def test_the_network_reads_words_and_predicts_the_next_one(tagger):
    review = grammar.reviews(1, 0)[0]
    example = layers.next_words(review)
    assert example.words + example.tags[-1:] == review.words
    assert not {"NOUN", "VERB"} & set(tagger.vocabulary.tags)


def test_there_is_a_state_for_every_word_in_every_layer_and_none_looks_ahead(tagger):
    reviews = grammar.reviews(6, 3)
    found, ends = layers.states(tagger, reviews)
    assert len(found) == len(layers.NAMES)
    assert all(len(x) == sum(len(each.words) - 1 for each in reviews) for x in found)
    assert ends[0] == len(reviews[0].words) - 2
    first = reviews[0]
    cut = [first._replace(words=(*first.words[:4], "and"), tags=first.tags[:5], depends=first.depends[:5])]
    for whole, part in zip(found, layers.states(tagger, cut)[0], strict=True):
        assert np.allclose(whole[:4], part[:4], atol=1e-6)


def test_the_embeddings_hold_the_word_and_not_the_part_of_speech(tagger):
    found = layers.probe(tagger, grammar.reviews(300, 4))
    assert found[layers.WORD][0] > 0.95
    assert found[layers.SPEECH][0] < 0.75

"""Probes of the layers: states of every word, from the embeddings up, of a network that reads words only."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.experiments import grammar, lower_layers
from nextword.experiments.learners import train_tagger
from nextword.experiments.small import Count

ADJECTIVES = grammar.GOOD + grammar.BAD


@pytest.fixture(scope="module")
def tagger():
    learned = [lower_layers.opinions(each) for each in grammar.reviews(60, 0)]
    events = train_tagger("lstm", learned, 0, {**lower_layers.SMALL, "train.steps": 3}, Count())
    while True:
        try:
            next(events)
        except StopIteration as end:
            return end.value


def test_the_network_learns_opinions_and_neither_reads_them_nor_learns_parts_of_speech(tagger):
    review = grammar.reviews(1, 0)[0]
    example = lower_layers.opinions(review)
    assert [word for word in review.words if word not in lower_layers.OPINIONS] == list(example.words)
    told = [tag for word, tag in zip(example.words, example.tags, strict=True) if word in (",", *ADJECTIVES)]
    assert told[0::2] == told[1::2] == [word for word in review.words if word in lower_layers.OPINIONS]
    assert set(example.tags[: example.words.index("was") + 1]) == {lower_layers.NOTHING}
    assert example.tags[-1] == review.words[-1]
    assert set(tagger.vocabulary.tags) == {lower_layers.NOTHING, *lower_layers.OPINIONS}


def test_there_is_a_state_for_every_word_in_every_layer_and_none_looks_ahead(tagger):
    sentences = [lower_layers.opinions(each).words for each in grammar.reviews(6, 3)]
    found = lower_layers.states(tagger, sentences)
    assert len(found) == len(lower_layers.NAMES)
    assert all(len(x) == sum(map(len, sentences)) for x in found)
    for whole, part in zip(found, lower_layers.states(tagger, [sentences[0][:4]]), strict=True):
        assert np.allclose(whole[:4], part, atol=1e-6)


def test_the_embeddings_hold_the_word_and_not_the_part_of_speech(tagger):
    found = lower_layers.probe(tagger, grammar.reviews(150, 4))
    assert found[lower_layers.WORD][0] > 0.95
    assert found[lower_layers.SPEECH][0] < 0.75

"""Words whose tag depends on what follows: a tagger from the left cannot know them."""

from __future__ import annotations

import numpy as np

from nextword.data.batches.words import Sentences
from nextword.experiments import bidirectional_tagging, grammar
from nextword.experiments.learners import train_tagger
from nextword.experiments.small import Count
from nextword.tasks.taggers import chain_of


def scores(directions, sentence):
    sets = {**bidirectional_tagging.SMALL, "model.bidirectional": directions, "train.steps": 3}
    events = train_tagger("lstm", grammar.tagged(60, 0), 0, sets, Count())
    while True:
        try:
            next(events)
        except StopIteration as end:
            tagger = end.value
            break
    rows = Sentences([sentence.split()], tagger.vocabulary.lexicon).take(np.array([0]))
    return chain_of(tagger, rows).emissions_BTK[0].numpy()


def test_only_a_tagger_from_both_sides_sees_what_follows():
    one, two = "we saw her garden .", "we saw her often ."
    assert np.array_equal(scores("none", one)[:3], scores("none", two)[:3])
    assert not np.array_equal(scores("separate", one)[:3], scores("separate", two)[:3])


def test_there_is_an_example_of_every_ambiguous_word_in_both_readings():
    rows = bidirectional_tagging._examples().rows
    assert len({(word, tag) for word, tag, _, _ in rows}) == len(rows) == 2 * len({row[0] for row in rows})

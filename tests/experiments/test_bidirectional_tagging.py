"""Words whose tag depends on what follows: a tagger from the left cannot know them."""

from __future__ import annotations

import numpy as np

from nextword.experiments import bidirectional_tagging, grammar
from nextword.experiments.learners import train_tagger
from nextword.experiments.small import Count
from nextword.tasks.taggers import TagPredictor


def confidences(directions, sentence):
    sets = {**bidirectional_tagging.SMALL, "model.bidirectional": directions, "train.steps": 3}
    events = train_tagger("lstm", grammar.tagged(60, 0), 0, sets, Count())
    while True:
        try:
            next(events)
        except StopIteration as end:
            tagger = end.value
            break
    (found,) = TagPredictor(tagger, tagger.vocabulary).tag([sentence.split()])
    return np.array([each["confidence"] for each in found.values["tokens"]])


def test_only_a_tagger_from_both_sides_sees_what_follows():
    one, two = "we saw her garden .", "we saw her often ."
    assert np.array_equal(confidences("none", one)[:3], confidences("none", two)[:3])
    assert not np.array_equal(confidences("separate", one)[:3], confidences("separate", two)[:3])


def test_there_is_an_example_of_every_ambiguous_word_in_both_readings():
    rows = bidirectional_tagging._examples().rows
    assert len({(word, tag) for word, tag, _, _ in rows}) == len(rows) == 2 * len({row[0] for row in rows})

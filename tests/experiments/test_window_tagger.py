"""The score of a window by hand is the tagger's; a window of one word knows nothing of its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.experiments import grammar, window_tagger
from nextword.experiments.learners import train_tagger
from nextword.experiments.small import Count


@pytest.fixture(scope="module")
def tagger():
    events = train_tagger(
        "window", grammar.names(60, 0), 0, {**window_tagger.SMALL, "train.steps": 5}, Count()
    )
    while True:
        try:
            next(events)
        except StopIteration as end:
            return end.value


def test_the_score_by_hand_is_the_tagger_s(tagger):
    apart = window_tagger.take_apart(tagger, grammar.MUSEUMS, 2)
    assert apart.words == grammar.MUSEUMS
    assert window_tagger._difference(tagger, apart) < 1e-5
    assert apart.p_K.sum() == pytest.approx(1.0)


def test_another_word_in_the_window_changes_only_what_it_adds(tagger):
    one = window_tagger.take_apart(tagger, grammar.MUSEUMS, 2)
    two = window_tagger.take_apart(tagger, ("museums", "of", "Paris", "are", "amazing"), 2)
    assert np.array_equal(one.parts_WH[[0, 2, 3, 4]], two.parts_WH[[0, 2, 3, 4]])
    assert not np.allclose(one.parts_WH[1], two.parts_WH[1])
    assert not np.allclose(one.scores_K, two.scores_K)

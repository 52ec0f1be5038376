"""Sentences whose noun stands far back, and how far back a network recalls it."""

from __future__ import annotations

import numpy as np

from nextword.data.batches.batch import NOT_COUNTED
from nextword.experiments import reach


def test_the_noun_stands_as_far_back_as_it_should():
    for distance in (5, 9, 40):
        ids, nouns = reach.make_rows(np.random.default_rng(0), 6, distance)
        assert (ids[:, -distance] == nouns).all()
        others = np.delete(ids, ids.shape[1] - distance, axis=1)
        assert (others >= reach.FIRST_WORD).all()


def test_reach_ends_at_the_first_distance_that_is_not_recalled():
    assert reach.reach(np.array([0.9, 0.6, 0.5, 1.0]), (5, 7, 10, 14)) == 7
    assert reach.reach(np.array([0.1, 0.9]), (5, 7)) == 0
    assert reach.reach(np.array([1.0, 1.0]), (5, 7)) == 7


def test_only_the_noun_is_learned_from():
    batch = reach.make_batch(np.random.default_rng(3))
    assert (batch.targets_BT[:, :-1] == NOT_COUNTED).all()
    assert ((batch.targets_BT[:, -1] >= 3) & (batch.targets_BT[:, -1] < reach.FIRST_WORD)).all()

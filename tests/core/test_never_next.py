"""The ids of probability 0, the same for every family."""

import numpy as np

from nextword.core.contracts import END, START, UNKNOWN, never_next
from nextword.mixtures.recent import RecentSettings, RecentWords
from nextword.ngram.smoothing.estimate import predictable


def test_start_never_comes_next_and_unknown_only_in_an_open_vocabulary() -> None:
    assert set(never_next(closed=False)) == {START}
    assert set(never_next(closed=True)) == {START, UNKNOWN}
    assert END not in never_next(closed=True)


def test_counts_and_memories_mask_the_same_ids() -> None:
    for closed in (False, True):
        first_V = RecentWords(RecentSettings(), 6, closed).even_V
        np.testing.assert_array_equal(first_V > 0, predictable(6, closed))
        np.testing.assert_array_equal(np.flatnonzero(first_V == 0), sorted(never_next(closed)))

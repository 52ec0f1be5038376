"""Rows of n-grams are sorted, however they are packed into keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.formats.arpa import trie


@given(
    rows=st.lists(st.lists(st.integers(0, 3), min_size=7, max_size=7), max_size=60),
    n=st.integers(2, 7),
    bits=st.integers(2, 31),
)
@settings(max_examples=60, deadline=None)
def test_rows_sort_alike_however_many_words_fit_into_a_key(rows: list[list[int]], n: int, bits: int) -> None:
    array = np.array([row[:n] for row in rows], dtype=np.int32).reshape(len(rows), n)
    order = trie._order_compiled(array, 1 << bits)
    found = array if order is None else array[order]
    np.testing.assert_array_equal(found, array[np.lexsort(array.T[::-1])])


def test_long_runs_of_equal_beginnings_are_sorted() -> None:
    array = np.random.default_rng(0).integers(0, 90, (5000, 4)).astype(np.int32)
    array[:, :2] = 7
    order = trie._order_compiled(array, 1 << 31)
    assert order is not None
    np.testing.assert_array_equal(array[order], array[np.lexsort(array.T[::-1])])

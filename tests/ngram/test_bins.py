"""Bins along a line: exact for few numbers, near for many."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.ngram import bins


def test_few_distinct_numbers_are_kept():
    values = np.array([3.0, -1.0, 3.0, 0.5])
    table = bins.centres(values, 4)
    assert table[bins.nearest(values, table)].tolist() == values.tolist()


@pytest.mark.parametrize("bits", [4, 8])
def test_bins_are_nearer_than_equally_filled_ones(bits):
    values = np.random.default_rng(0).normal(size=20_000) ** 3
    table = bins.centres(values, bits)
    assert len(table) == 2**bits
    assert np.all(np.diff(table) > 0)
    error = np.square(values - table[bins.nearest(values, table)]).mean()
    equal = np.array([part.mean() for part in np.array_split(np.sort(values), 2**bits)], dtype=np.float32)
    assert error < np.square(values - equal[bins.nearest(values, equal)]).mean()


def test_a_number_that_fills_many_bins_leaves_the_others_free():
    values = np.concatenate([np.zeros(100_000), np.linspace(1, 2, 1000)])
    table = bins.centres(values, 5)
    assert len(table) == 32
    assert np.abs(values - table[bins.nearest(values, table)]).max() < 0.1


def test_no_numbers_and_equal_numbers_have_one_bin():
    assert len(bins.centres(np.empty(0), 8)) == 1
    assert bins.centres(np.full(5, 2.5), 8).tolist() == [2.5]

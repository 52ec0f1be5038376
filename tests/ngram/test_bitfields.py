"""Numbers of few bits: whatever is packed comes back, by both paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.ngram import bitfields

fields = st.lists(st.integers(0, 32).flatmap(lambda w: st.tuples(st.integers(0, 2**w - 1), st.just(w))))


@given(fields)
def test_packed_numbers_come_back(rows):
    values = np.array([value for value, _ in rows], dtype=np.int64)
    widths = np.array([width for _, width in rows], dtype=np.uint8)
    data = bitfields.pack(values, widths, plain=True)
    assert len(data) == (int(widths.sum(dtype=np.int64)) + 7) // 8
    assert bitfields.unpack(data, widths, plain=True).tolist() == values.tolist()


def test_compiled_packing_equals_the_plain_way():
    rng = np.random.default_rng(1)
    widths = rng.integers(0, 33, 3000).astype(np.uint8)
    values = rng.integers(0, 2**32, 3000) & ((1 << widths.astype(np.int64)) - 1)
    data = bitfields.pack(values, widths, plain=True)
    assert np.array_equal(data, bitfields.pack(values, widths, plain=False))
    assert np.array_equal(values, bitfields.unpack(data, widths, plain=False))


@given(st.lists(st.integers(0, 5)))
def test_offsets_come_back(steps):
    offsets = np.concatenate([[0], np.cumsum(steps, dtype=np.int64)]).astype(np.uint32)
    data = bitfields.pack_runs(offsets)
    assert bitfields.unpack_runs(data, len(steps), int(offsets[-1])).tolist() == offsets.tolist()


def test_bytes_of_another_length_are_refused():
    widths = np.full(9, 5, dtype=np.uint8)
    with pytest.raises(ValueError, match="5 bytes instead of 6"):
        bitfields.unpack(np.zeros(5, dtype=np.uint8), widths)
    with pytest.raises(ValueError, match="bytes instead of"):
        bitfields.unpack_runs(np.zeros(1, dtype=np.uint8), 20, 20)
    with pytest.raises(ValueError, match="0 steps instead of 4"):
        bitfields.unpack_runs(np.full(1, 255, dtype=np.uint8), 4, 4)

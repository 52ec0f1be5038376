"""Compiled parts of `buckets`: n-grams as records, and the bucket of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import END
from nextword.system.compiled import compiled

Array = np.ndarray[Any, np.dtype[Any]]
_END = END


def records(padded: Array, order: int, step: int, first: int) -> Array:
    """Return the token before and the n-gram of the positions first, first+1, … that `step` divides."""
    count = len(padded) - order
    skip = -first % step
    found = np.zeros((max(0, -(-(count - skip) // step)), order + 1), dtype=np.int32)
    _cut(padded, order, step, skip, found)
    return found


@compiled(nogil=True)
def _cut(padded, order, step, skip, found):  # type: ignore[no-untyped-def]
    """Cut records; after END a record holds zeros, so that equal n-grams are equal records."""
    for i in range(len(found)):
        at = skip + i * step
        found[i, 0] = padded[at]
        for n in range(1, order + 1):
            found[i, n] = padded[at + n]
            if padded[at + n] == _END:
                break


@compiled(nogil=True)
def _assign(rows, splitters, buckets):  # type: ignore[no-untyped-def]
    order = rows.shape[1] - 1
    for i in range(len(rows)):
        low, high = 0, len(splitters)
        while low < high:  # count the splitters that are not larger
            middle = (low + high) >> 1
            larger = False
            for n in range(order):
                if splitters[middle, n] != rows[i, n + 1]:
                    larger = splitters[middle, n] > rows[i, n + 1]
                    break
            if larger:
                high = middle
            else:
                low = middle + 1
        buckets[i] = low


def assign(rows: Array, splitters: Array) -> Array:
    """Return the bucket of each record."""
    buckets = np.empty(len(rows), dtype=np.int64)
    _assign(rows, np.ascontiguousarray(splitters), buckets)
    return buckets


@compiled(nogil=True)
def positions_of(rows, cursor, positions):  # type: ignore[no-untyped-def]
    """Write where each record's n-gram starts in the flat records, sorted by its first token."""
    stride = rows.shape[1]
    for i in range(len(rows)):
        word = rows[i, 1]
        positions[cursor[word]] = i * stride + 1
        cursor[word] += 1

"""Replace many numbers by a few: bins along a line, each with the mean of its numbers.

KenLM fills its bins equally; here that is where k-means (Lloyd 1982) starts from, which then lowers the
squared error until it settles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
_CELLS = 1 << 16  # numbers are sorted into this many cells once; the rest works on the cells
_ROUNDS = 40


def centres(values: Array, bits: int) -> Array:
    """Return at most 2^bits numbers, ascending, as float32, that are near all values."""
    if not len(values):
        return np.zeros(1, dtype=np.float32)
    low, high = float(values.min()), float(values.max())
    scale = (_CELLS - 1) / (high - low) if high > low else 0.0
    cells = ((values - low) * scale).astype(np.int64)
    counts = np.bincount(cells, minlength=_CELLS)
    sums = np.bincount(cells, weights=values, minlength=_CELLS)
    full = counts > 0
    n, total = counts[full].astype(np.float64), sums[full]
    means = total / n
    if len(means) <= 1 << bits:
        return means.astype(np.float32)
    n_before = np.concatenate([[0.0], np.cumsum(n)])
    sum_before = np.concatenate([[0.0], np.cumsum(total)])
    shares = (np.arange(1 << bits) + 0.5) / (1 << bits) * n_before[-1]
    found = np.unique(means[np.searchsorted(n_before[1:], shares)])
    found = _filled(found, means, 1 << bits)
    for _ in range(_ROUNDS):
        edges = np.concatenate([[0], np.searchsorted(means, _borders(found)), [len(means)]])
        inside = np.diff(n_before[edges])
        found = np.where(inside > 0, np.diff(sum_before[edges]) / np.maximum(inside, 1.0), found)
    return found.astype(np.float32)


def nearest(values: Array, table: Array) -> Array:
    """Return the place of the nearest number of an ascending table for each value, as uint8."""
    return np.searchsorted(_borders(table.astype(np.float64)), values).astype(np.uint8)


def _borders(table: Array) -> Array:
    return (table[1:] + table[:-1]) / 2


def _filled(found: Array, means: Array, size: int) -> Array:
    """Add centres where none are, evenly along the line: equal shares of few frequent numbers leave some."""
    spare = np.setdiff1d(means, found)
    missing = min(size - len(found), len(spare))
    if missing <= 0:
        return found
    return np.sort(np.concatenate([found, spare[np.linspace(0, len(spare) - 1, missing).astype(np.int64)]]))

"""Numbers of few bits side by side, without gaps: each has the width that its place says."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
SMALL = 600_000  # up to this many numbers NumPy is quicker than loading the kernels
_SPARE = 8  # bytes after the last number, so that reading a whole word never leaves the array


def pack(values: Array, widths: Array, plain: bool | None = None) -> Array:
    """Return bytes with ``values[i]`` in the next ``widths[i]`` bits (at most 32), the lowest bit first."""
    if not (len(values) <= SMALL if plain is None else plain):
        from nextword.ngram.fast import bitfield_kernels  # compiled

        data = np.zeros(_bytes(widths) + _SPARE, dtype=np.uint8)
        bitfield_kernels.pack(values.astype(np.uint32), widths, data)
        return data[:-_SPARE]
    places = np.cumsum(widths, dtype=np.int64) - widths
    bits = np.zeros(8 * _bytes(widths), dtype=np.uint8)
    which = np.arange(len(values))
    for k in range(int(widths.max(initial=0))):
        which = which[widths[which] > k]
        bits[places[which] + k] = (values[which] >> k) & 1
    return np.packbits(bits, bitorder="little")


def unpack(data: Array, widths: Array, plain: bool | None = None) -> Array:
    """Return the numbers that `pack` wrote, as uint32; ValueError if there are too few bytes."""
    if len(data) != _bytes(widths):
        raise ValueError(f"{len(data):,} bytes instead of {_bytes(widths):,}")
    data = np.concatenate([data, np.zeros(_SPARE, dtype=np.uint8)])
    if not (len(widths) <= SMALL if plain is None else plain):
        from nextword.ngram.fast import bitfield_kernels  # compiled

        values = np.empty(len(widths), dtype=np.uint32)
        bitfield_kernels.unpack(data, widths, values)
        return values
    places = np.cumsum(widths, dtype=np.int64) - widths
    found = np.zeros(len(widths), dtype=np.uint64)
    for k in range(5):  # 32 bits that begin anywhere in a byte
        found |= data[(places >> 3) + k].astype(np.uint64) << np.uint64(8 * k)
    found >>= (places & 7).astype(np.uint64)
    ones = (np.uint64(1) << widths.astype(np.uint64)) - np.uint64(1)
    return (found & ones).astype(np.uint32)


def _bytes(widths: Array) -> int:
    return (int(widths.sum(dtype=np.int64)) + 7) // 8


def pack_runs(offsets: Array) -> Array:
    """Write offsets that never fall, from 0, as bits: for each step that many ones, then a zero."""
    ends = offsets[1:].astype(np.int64)
    bits = np.ones(len(ends) + (int(ends[-1]) if len(ends) else 0), dtype=np.uint8)
    bits[ends + np.arange(len(ends))] = 0
    return np.packbits(bits, bitorder="little")


def unpack_runs(data: Array, steps: int, total: int) -> Array:
    """Return the offsets that `pack_runs` wrote, as int64; ValueError if they are others than announced."""
    if len(data) != (steps + total + 7) // 8:
        raise ValueError(f"{len(data):,} bytes instead of {(steps + total + 7) // 8:,}")
    zeros = np.flatnonzero(np.unpackbits(data, count=steps + total, bitorder="little") == 0)
    if len(zeros) != steps:
        raise ValueError(f"{len(zeros):,} steps instead of {steps:,}")
    offsets = np.zeros(steps + 1, dtype=np.int64)
    np.subtract(zeros, np.arange(steps), out=offsets[1:])
    return offsets

"""Sort and count one bucket on its own and write its slice of the trie to disk.

A worker process on this machine or a task on a cluster calls it with file names only.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from nextword.ngram.limited import joining


def count_bucket(
    records_path: str, slice_path: str, order: int, vocab_size: int, adjusted: bool, keep: bool = False
) -> None:
    """Sort and count one bucket; its records are deleted once its slice is written, unless kept."""
    from nextword.ngram.fast import kernels
    from nextword.ngram.fast.estimate import FlatCounts
    from nextword.ngram.limited import kernels as bucket_kernels

    records = np.fromfile(records_path, np.int32).reshape(-1, order + 1)
    flat = records.reshape(-1)
    low, high = int(records[:, 1].min()), int(records[:, 1].max()) + 1
    starts = np.concatenate([[0], np.cumsum(np.bincount(records[:, 1], minlength=vocab_size))])
    positions = np.empty(len(records), dtype=np.uint32 if flat.size < 2**32 else np.uint64)
    bucket_kernels.positions_of(records, starts[:-1].copy(), positions)
    shape, sizes = np.empty(len(records), dtype=np.uint8), np.zeros(order + 2, dtype=np.int64)
    bits = max(2, int(vocab_size - 1).bit_length())
    kernels.sort_words(flat, order, bits, low, high, starts, positions, shape, sizes)
    begins = np.zeros(order + 2, dtype=np.int64)
    begins[2:] = np.cumsum([vocab_size, *sizes[2 : order + 1]])
    left = adjusted and order > 1
    words = np.empty(begins[order + 1], dtype=np.int32)
    counts = np.empty(begins[order + 1] - begins[order if adjusted else 1], dtype=np.uint32)
    adjusted_counts = np.empty(begins[order] if left else 0, dtype=np.uint32)
    children = np.empty(begins[order] + order, dtype=np.uint32)
    kernels.fill(
        flat, order, low, high, starts, positions, shape, begins, np.zeros(order + 2, dtype=np.int64),
        order if adjusted else 1, left, words, counts, adjusted_counts, children,
    )  # fmt: skip
    for n in range(1, order):
        children[begins[n] + n - 1 + (high if n == 1 else sizes[n])] = sizes[n + 1]
    found = FlatCounts(
        vocab_size, order, begins, words, children, counts, adjusted_counts, order if adjusted else 1
    )
    joining.write_slice(Path(slice_path), found, flat, positions, shape, (low, high))
    if not keep:
        os.unlink(records_path)

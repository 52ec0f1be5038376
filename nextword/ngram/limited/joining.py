"""Join slices of a count trie on disk; neighbours may share the n-gram on their border.

If bucket b ends and the next begins inside the same n-gram, the two halves become one node:
counts are added, distinct left neighbours are united, extensions are counted once.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nextword.core.contracts import START
from nextword.ngram.limited.mapped import ArrayWriter

if TYPE_CHECKING:
    from nextword.ngram.fast.estimate import FlatCounts

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Joined:
    """The joined counts; the arrays are files."""

    order: int
    sizes: list[int]  # of each order
    values: list[Path]  # of order 2 …: the counts the smoothing uses, uint32
    adjusted_1: Array  # number of distinct tokens before each token
    n_r: dict[int, Array]  # counts of counts of order 2 …


def write_slice(
    folder: Path, found: FlatCounts, flat: Array, positions: Array, shape: Array, words: tuple[int, int]
) -> None:
    """Write a bucket's levels, and what joining its borders needs."""
    folder.mkdir()
    order, adjusted = found.order, len(found.adjusted) > 0
    for n in range(2, order + 1):
        found.words_of(n).tofile(folder / f"words-{n}")
        values = found.of(n, found.adjusted) if adjusted and n < order else found.counts_of(n)
        values.tofile(folder / f"values-{n}")
        if n < order:
            _widths(found, n).tofile(folder / f"widths-{n}")
    if order > 1:
        children = found.children[words[0] : words[1] + 1].astype(np.int64)
        np.diff(children).astype(np.uint32).tofile(folder / "widths-1")
    first, last = int(positions[0]), int(positions[-1])
    border = {
        "low": words[0], "sizes": [0, *(found.size(n) for n in range(2, order + 1))],
        "first": flat[first : first + order].tolist(), "last": flat[last : last + order].tolist(),
    }  # fmt: skip
    (folder / "border.json").write_text(json.dumps(border))
    if adjusted:
        for n in range(2, order):
            head, tail = _border_rows(shape, n)
            np.unique(flat[positions[:head].astype(np.int64) - 1]).tofile(folder / f"before-first-{n}")
            np.unique(flat[positions[tail:].astype(np.int64) - 1]).tofile(folder / f"before-last-{n}")


def _widths(found: FlatCounts, n: int) -> Array:
    children = found.children_of(n)
    assert children is not None
    return np.diff(children.astype(np.int64)).astype(np.uint32)


def _border_rows(shape: Array, n: int) -> tuple[int, int]:
    """Return where the first n-gram of order n ends, and where the last one starts, as rows."""
    begins = np.flatnonzero((shape & 15) < n)
    head = int(begins[1]) if len(begins) > 1 else len(shape)
    return head, int(begins[-1])


class Slice:
    """A slice as written."""

    def __init__(self, folder: Path) -> None:
        border = json.loads((folder / "border.json").read_text())
        self.folder, self.low, self.sizes = folder, int(border["low"]), border["sizes"]
        self.first, self.last = border["first"], border["last"]

    def read(self, name: str, kind: Any = np.uint32) -> Array:
        """Return one of its arrays."""
        return np.fromfile(self.folder / name, kind)

    def shared_with(self, before: Slice) -> int:
        """Return how many tokens the last n-gram before and the first one here have in common."""
        for n, (a, b) in enumerate(zip(before.last, self.first, strict=True)):
            if a != b:
                return n
        return len(self.first)


def join(scratch: Path, out: Path, buckets: int, order: int, vocab_size: int, adjusted: bool) -> Joined:
    """Write the levels of the whole trie: words and children as stored, counts for the smoothing."""
    slices = [Slice(scratch / f"bucket-{b}") for b in range(buckets) if (scratch / f"bucket-{b}").exists()]
    shared = [0, *(b.shared_with(a) for a, b in pairwise(slices))]
    sizes = [vocab_size] + [
        sum(s.sizes[n - 1] - (n <= k) for s, k in zip(slices, shared, strict=True))
        for n in range(2, order + 1)
    ]
    adjusted_1, n_r, values = np.zeros(vocab_size, dtype=np.int64), {}, []
    if order > 1:
        _join_first_widths(slices, shared, vocab_size, out, sizes[1])
    for n in range(2, order + 1):
        with ArrayWriter(out / f"ngram-{n}.words.npy", np.int32, sizes[n - 1]) as words:
            for piece in _without_shared(slices, shared, n):
                words.write(piece)
                if n == 2:
                    adjusted_1 += np.bincount(piece, minlength=vocab_size)
        values.append(scratch / f"values-{n}.npy")
        n_r[n] = np.zeros(5)
        merge = _union(slices, n) if adjusted and n < order else _sum
        with ArrayWriter(values[-1], np.uint32, sizes[n - 1]) as counts:
            for piece in _merged(slices, shared, n, f"values-{n}", merge):
                counts.write(piece)
                n_r[n] += np.bincount(piece[piece < 5], minlength=5)
        if n < order:
            _join_widths(slices, shared, n, out, sizes)
    for each in slices:
        shutil.rmtree(each.folder)
    return Joined(order, sizes, values, adjusted_1, n_r)


Merge = Callable[[int, int, int], int]  # (slice number, value before, value here) -> merged value


def _sum(_: int, before: int, here: int) -> int:
    return before + here


def _union(slices: list[Slice], n: int) -> Merge:
    """Merge distinct left neighbours of an n-gram in several slices; plain counts if it starts with START."""
    open_since: dict[str, Any] = {"at": -2, "set": None}

    def merge(b: int, before: int, here: int) -> int:
        if slices[b].first[0] == START:
            return before + here
        if open_since["at"] != b - 1:
            open_since["set"] = slices[b - 1].read(f"before-last-{n}", np.int32)
        together = np.union1d(open_since["set"], slices[b].read(f"before-first-{n}", np.int32))
        # It continues past this slice only if the slice holds nothing but this n-gram.
        open_since.update(at=b if slices[b].sizes[n - 1] == 1 else -2, set=together)
        return len(together)

    return merge


def _without_shared(slices: list[Slice], shared: list[int], n: int) -> Iterator[Array]:
    for each, k in zip(slices, shared, strict=True):
        yield each.read(f"words-{n}", np.int32)[int(n <= k) :]


def _merged(slices: list[Slice], shared: list[int], n: int, name: str, merge: Merge) -> Iterator[Array]:
    """Yield the values of level n; the last one of a slice waits for what the next slice adds to it."""
    waiting: int | None = None
    for b, (each, k) in enumerate(zip(slices, shared, strict=True)):
        piece = each.read(name)
        if n <= k:
            assert waiting is not None
            waiting, piece = merge(b, waiting, int(piece[0])), piece[1:]
        if len(piece):
            if waiting is not None:
                yield np.array([waiting], dtype=piece.dtype)
            yield piece[:-1]
            waiting = int(piece[-1])
    if waiting is not None:
        yield np.array([waiting], dtype=np.uint32)


def _join_widths(slices: list[Slice], shared: list[int], n: int, out: Path, sizes: list[int]) -> None:
    """Write where the extensions of every n-gram of order n start."""

    def merge(b: int, before: int, here: int) -> int:
        return before + here - (n + 1 <= shared[b])

    kind = np.uint32 if sizes[n] < 2**32 else np.uint64
    with ArrayWriter(out / f"ngram-{n}.children.npy", kind, sizes[n - 1] + 1) as children:
        children.write(np.zeros(1, dtype=kind))
        total = 0
        for piece in _merged(slices, shared, n, f"widths-{n}", merge):
            ends = total + np.cumsum(piece, dtype=np.int64)
            children.write(ends.astype(kind))
            total = int(ends[-1]) if len(ends) else total


def _join_first_widths(slices: list[Slice], shared: list[int], vocab_size: int, out: Path, size: int) -> None:
    widths = np.zeros(vocab_size + 1, dtype=np.int64)
    for each, k in zip(slices, shared, strict=True):
        piece = each.read("widths-1")
        widths[1 + each.low : 1 + each.low + len(piece)] += piece
        widths[1 + each.low] -= k >= 2
    kind = np.uint32 if size < 2**32 else np.uint64
    with ArrayWriter(out / "ngram-1.children.npy", kind, vocab_size + 1) as children:
        children.write(np.cumsum(widths).astype(kind))

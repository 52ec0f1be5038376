"""From n-grams in any order to a sorted trie; what a pruned file leaves out is put back in.

A trie needs the prefix of every n-gram, and quick scoring its suffix too. Programs that prune may leave a
suffix out (SRILM) or even a prefix: such n-grams are added with the probability that backing off gives them,
so that no probability changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.ngram.arrays import Level, Trie
from nextword.ngram.model import find_children

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Grams:
    """The n-grams of one order as they stand in the file: one row of words each."""

    rows: Array  # int32 [N, n]
    probs: Array  # float32 probabilities
    backoffs: Array  # float32 weights; empty at the highest order


class DuplicateError(Exception):
    """Two rows of one order hold the same words."""

    def __init__(self, n: int, first: int, second: int) -> None:
        super().__init__(n, first, second)
        self.n, self.first, self.second = n, first, second


class MissingContextError(Exception):
    """A row's prefix is not among the shorter n-grams."""

    def __init__(self, n: int, row: int) -> None:
        super().__init__(n, row)
        self.n, self.row = n, row


@dataclass(frozen=True)
class _Sorted:
    """One level in sorted order: ``order`` are rows of the file, ``parents`` and ``suffixes`` nodes."""

    order: Array
    parents: Array
    suffixes: Array
    children: Array | None  # of the level above (n-1), now that this one is known
    missing_prefix: int
    missing_suffix: int
    twice: int


def build(grams: list[Grams], insert: bool, plain: bool) -> tuple[Trie, int]:
    """The trie of all orders, and how many n-grams were added. ``grams[0]`` has a row for each word.

    ``insert=False``: a missing prefix is an error; a missing suffix never is.
    """
    real = [len(level.rows) for level in grams]
    sort = _sort_plain if plain else _sort_compiled
    levels = _sort_all(grams, sort)
    _refuse(levels, grams, insert, real)
    while any(level.missing_prefix or level.missing_suffix for level in levels[1:]):
        grams = _closed(grams, levels)  # one round nearly always; below a missing prefix there may be another
        levels = _sort_all(grams, sort)
        grams, levels = _without_twins(grams, levels, real, sort)
    trie = Trie(tuple(_level(n, grams, levels) for n in range(1, len(grams) + 1)))
    added = sum(len(level.rows) for level in grams) - sum(real)
    if added:
        _fill(trie, levels, real)
    return trie, added


def _sort_all(grams: list[Grams], sort: Any) -> list[_Sorted]:
    vocab = len(grams[0].rows)
    nothing = np.full(vocab, -1, dtype=np.int64)
    levels = [_Sorted(np.arange(vocab), nothing, np.zeros(vocab, dtype=np.int64), None, 0, 0, -1)]
    for n in range(2, len(grams) + 1):
        levels.append(sort(n, grams, levels))
    return levels


def _refuse(levels: list[_Sorted], grams: list[Grams], insert: bool, real: list[int]) -> None:
    for n, level in enumerate(levels, start=1):
        if level.twice >= 0:
            first, second = sorted(int(row) for row in level.order[level.twice - 1 : level.twice + 1])
            raise DuplicateError(n, first, second)
        if level.missing_prefix and not insert:
            raise MissingContextError(n, int(level.order[level.parents < 0].min()))


def _sort_plain(n: int, grams: list[Grams], levels: list[_Sorted]) -> _Sorted:
    """NumPy only: sort, then look every prefix and suffix up in the levels that are already there."""
    rows, above = grams[n - 1].rows, levels[n - 2]
    order = np.lexsort(rows.T[::-1])
    rows = rows[order]
    trie = [_view(m, grams, levels) for m in range(1, n)]
    parents = _walk(trie, rows[:, :-1])
    counts = np.bincount(parents[parents >= 0], minlength=len(above.order))
    children = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    found = _walk(trie, rows[:, 1:])
    twice = np.flatnonzero((rows[1:] == rows[:-1]).all(axis=1))
    return _Sorted(
        order,
        parents,
        found,
        children,
        int((parents < 0).sum()),
        int((found < 0).sum()),
        int(twice[0]) + 1 if len(twice) else -1,
    )


def _view(m: int, grams: list[Grams], levels: list[_Sorted]) -> Level:
    """Level m as far as `find_children` needs it."""
    words = grams[m - 1].rows[levels[m - 1].order, -1]
    children = levels[m].children if m < len(levels) else None
    return Level(words, words, None, children)


def _walk(levels: list[Level], rows: Array) -> Array:
    """The node of each row, or -1; ``levels`` are as many as a row has words."""
    nodes = rows[:, 0].astype(np.int64)
    for k in range(1, rows.shape[1]):
        if not len(levels[k - 1]):
            return np.full(len(rows), -1, dtype=np.int64)
        nodes = find_children(levels[k - 1], levels[k], nodes, rows[:, k])
    return nodes


def _sort_compiled(n: int, grams: list[Grams], levels: list[_Sorted]) -> _Sorted:
    """Sort on packed words, then one walk along this level and the one above it."""
    from nextword.formats import arpa_kernels as kernels

    rows, above, above_rows = grams[n - 1].rows, levels[n - 2], grams[n - 2].rows
    order = _order(rows, max(1, int(len(grams[0].rows) - 1).bit_length()))
    parents = np.empty(len(rows), dtype=np.int64)
    children = np.empty(len(above.order) + 1, dtype=np.uint64 if len(rows) >= 1 << 32 else np.uint32)
    missing, twice = kernels.link(rows, order, above_rows, above.order, children, parents)
    words = rows[order, -1]
    if n == 2:
        found = words.astype(np.int64)
        absent = 0
    else:
        found = np.empty(len(rows), dtype=np.int64)
        links = above.suffixes if not missing else np.append(above.suffixes, -1)  # a missing parent is -1
        assert above.children is not None
        absent = kernels.suffixes(words, parents, links, above.children, above_rows[above.order, -1], found)
    return _Sorted(order, parents, found, children, int(missing), int(absent), int(twice))


def _order(rows: Array, bits: int) -> Array:
    """What sorts the rows by their words from first to last."""
    from nextword.formats import arpa_kernels as kernels

    n = rows.shape[1]
    split = min(n, 64 // bits)
    high = np.empty(len(rows), dtype=np.uint64)
    kernels.pack(rows, bits, 0, split, high)
    ascending = bool(np.all(high[1:] >= high[:-1]))  # our own files are sorted already
    order = np.arange(len(rows)) if ascending else np.argsort(high)
    while split < n:
        last = min(n, split + 64 // bits)
        low = np.empty(len(rows), dtype=np.uint64)
        kernels.pack(rows, bits, split, last, low)
        kernels.sort_runs(high, low, order)
        if last < n:  # very long n-grams: runs of equal rows so far become the next high keys
            change = np.empty(len(rows), dtype=np.uint64)
            keys = np.stack([high[order], low[order]], axis=1)
            change[order] = np.cumsum(np.append(0, (keys[1:] != keys[:-1]).any(axis=1))).astype(np.uint64)
            high = change
        split = last
    return order


def _closed(grams: list[Grams], levels: list[_Sorted]) -> list[Grams]:
    """The same n-grams and, for each whose prefix or suffix is missing, all pieces of it."""
    extra: list[list[Array]] = [[] for _ in grams]
    for n in range(3, len(grams) + 1):
        level = levels[n - 1]
        rows = grams[n - 1].rows[level.order[(level.parents < 0) | (level.suffixes < 0)]]
        for m in range(2, n):
            extra[m - 1] += [rows[:, first : first + m] for first in range(n - m + 1)]
    result = []
    for n, (old, new) in enumerate(zip(grams, extra, strict=True), start=1):
        added = np.unique(np.concatenate(new), axis=0) if new else np.empty((0, n), dtype=np.int32)
        ones = np.ones(len(added), dtype=np.float32)
        weights = old.backoffs if n == len(grams) else np.concatenate([old.backoffs, ones])
        result.append(Grams(np.concatenate([old.rows, added]), np.concatenate([old.probs, ones]), weights))
    return result


def _without_twins(
    grams: list[Grams], levels: list[_Sorted], real: list[int], sort: Any
) -> tuple[list[Grams], list[_Sorted]]:
    """Drop added rows that the file had already: of two equal neighbours the one that was added."""
    kept = []
    for level, sorted_, count in zip(grams, levels, real, strict=True):
        rows = level.rows[sorted_.order]
        same = np.concatenate([[False], (rows[1:] == rows[:-1]).all(axis=1)])
        either = np.flatnonzero(same)
        drop = np.maximum(sorted_.order[either], sorted_.order[either - 1])
        keep = np.ones(len(level.rows), dtype=bool)
        keep[drop[drop >= count]] = False
        weights = level.backoffs[keep] if len(level.backoffs) else level.backoffs
        kept.append(Grams(level.rows[keep], level.probs[keep], weights))
    return kept, _sort_all(kept, sort)


def _level(n: int, grams: list[Grams], levels: list[_Sorted]) -> Level:
    order, level = levels[n - 1].order, grams[n - 1]
    words = np.ascontiguousarray(level.rows[order, -1], dtype=np.int32)
    if n == len(grams):
        return Level(words, level.probs[order], None, None)
    return Level(words, level.probs[order], level.backoffs[order], levels[n].children)


def _fill(trie: Trie, levels: list[_Sorted], real: list[int]) -> None:
    """Probabilities of added n-grams, shortest first: weight of the prefix times p of the suffix."""
    for n in range(2, trie.order + 1):
        sorted_, level, above = levels[n - 1], trie.levels[n - 1], trie.levels[n - 2]
        new = np.flatnonzero(sorted_.order >= real[n - 1])
        assert above.backoffs is not None
        level.probs[new] = above.backoffs[sorted_.parents[new]] * above.probs[sorted_.suffixes[new]]

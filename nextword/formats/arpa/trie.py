"""From n-grams in any order to a sorted trie; what a pruned file leaves out is restored.

A trie needs the prefix of every n-gram, and fast scoring its suffix too. Programs that prune may leave a
suffix out (SRILM) or even a prefix: such n-grams are added with the probability that backing off gives them,
so that no probability changes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.ngram.arrays import Level, Trie
from nextword.ngram.model import find_children

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Grams:
    """The n-grams of one order: one row of words each, as they stand in the file or sorted."""

    rows: Array  # int32 [N, n]
    probs: Array  # float32 probabilities
    backoffs: Array  # float32 weights; empty at the highest order
    origin: Array | None = None  # where each stood in the file; None: in this order

    def take(self, order: Array) -> Grams:
        """Take these rows, in this order."""
        origin = order if self.origin is None else self.origin[order]
        backoffs = self.backoffs[order] if len(self.backoffs) else self.backoffs
        return Grams(np.take(self.rows, order, axis=0), self.probs[order], backoffs, origin)

    def where(self, place: int) -> int:
        """Return the row of the file at a place."""
        return place if self.origin is None else int(self.origin[place])


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
class _Links:
    """How the sorted n-grams of one order are linked to those of the order below; -1: not there."""

    parents: Array  # the node of each prefix
    suffixes: Array  # the node of each n-gram without its first word
    children: Array  # for each shorter n-gram, where its extensions start
    missing_prefix: int
    missing_suffix: int
    twice: int  # the first place that equals the one before it, or -1

    @property
    def whole(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing_prefix and not self.missing_suffix


def build(grams: list[Grams], insert: bool, plain: bool) -> tuple[Trie, int]:
    """Build the trie of all orders, and count the n-grams added. ``grams[0]`` has a row for each word.

    ``insert=False``: a missing prefix is an error; a missing suffix never is.
    """
    real = [len(level.rows) for level in grams]
    order, link = (_order_plain, _link_plain) if plain else (_order_compiled, _link_compiled)
    grams = _sort(grams, order)
    links = _link_all(grams, link)
    _refuse(grams, links, insert)
    while not all(level.whole for level in links):
        # One round nearly always; below a missing prefix there may be another.
        grams = _sort(_without_twins(_sort(_closed(grams, links), order), real), order)
        links = _link_all(grams, link)
    trie = Trie(tuple(_level(n, grams, links) for n in range(1, len(grams) + 1)))
    added = sum(trie.sizes) - sum(real)
    if added:
        _fill(trie, grams, links, real)
    return trie, added


def _sort(grams: list[Grams], order: Callable[[Array, int], Array | None]) -> list[Grams]:
    """Sort every order by its words from first to last; several at a time."""
    vocab = len(grams[0].rows)

    def one(level: Grams) -> Grams:
        found = order(level.rows, vocab)
        return level if found is None else level.take(found)

    with ThreadPoolExecutor(2) as pool:  # the largest is last: begin with it
        return [grams[0], *list(pool.map(one, grams[:0:-1]))[::-1]]


def _link_all(grams: list[Grams], link: Callable[[int, list[Grams], list[_Links]], _Links]) -> list[_Links]:
    """Return the links of the orders 2, 3, …; the first in the list is that of order 2."""
    links: list[_Links] = []
    for n in range(2, len(grams) + 1):
        links.append(link(n, grams, links))
    return links


def _refuse(grams: list[Grams], links: list[_Links], insert: bool) -> None:
    for n, (level, found) in enumerate(zip(grams[1:], links, strict=True), start=2):
        if found.twice >= 0:
            raise DuplicateError(n, *sorted((level.where(found.twice - 1), level.where(found.twice))))
        if found.missing_prefix and not insert:
            raise MissingContextError(n, min(map(level.where, np.flatnonzero(found.parents < 0).tolist())))


# ---- plain ----------------------------------------------------------------------------------------------


def _order_plain(rows: Array, vocab: int) -> Array | None:
    return np.lexsort(rows.T[::-1])


def _link_plain(n: int, grams: list[Grams], links: list[_Links]) -> _Links:
    """Look up every prefix and suffix in the orders that are already there, with NumPy only."""
    rows = grams[n - 1].rows
    levels = []
    for m in range(1, n):
        words = grams[m - 1].rows[:, -1]
        levels.append(Level(words, words, None, links[m - 1].children if m - 1 < len(links) else None))
    parents, found = _walk(levels, rows[:, :-1]), _walk(levels, rows[:, 1:])
    counts = np.bincount(parents[parents >= 0], minlength=len(grams[n - 2].rows))
    children = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
    twice = np.flatnonzero((rows[1:] == rows[:-1]).all(axis=1))
    absent = int((parents < 0).sum()), int((found < 0).sum())
    return _Links(parents, found, children, *absent, int(twice[0]) + 1 if len(twice) else -1)


def _walk(levels: list[Level], rows: Array) -> Array:
    """Return the node of each row, or -1; ``levels`` are as many as a row has words."""
    nodes = rows[:, 0].astype(np.int64)
    for k in range(1, rows.shape[1]):
        if not len(levels[k - 1]):
            return np.full(len(rows), -1, dtype=np.int64)
        nodes = find_children(levels[k - 1], levels[k], nodes, rows[:, k])
    return nodes


# ---- compiled -------------------------------------------------------------------------------------------


def _order_compiled(rows: Array, vocab: int) -> Array | None:
    """Sort the rows by keys of as many words as fit into 64 bits; None if they are sorted already."""
    from nextword.formats.arpa import trie_kernels as kernels

    n, bits = rows.shape[1], max(1, (vocab - 1).bit_length())
    if kernels.ascending(rows):
        return None
    split = min(n, 64 // bits)
    high = np.empty(len(rows), dtype=np.uint64)
    kernels.pack(rows, bits, 0, split, high)
    order = np.argsort(high)
    high = high[order]
    while split < n:  # within runs of equal keys, by the words that come next
        last = min(n, split + 64 // bits)
        low = np.empty(len(rows), dtype=np.uint64)
        kernels.pack(rows, bits, split, last, low)
        low = low[order]
        kernels.sort_runs(high, low, order)
        changes = np.concatenate([[False], (high[1:] != high[:-1]) | (low[1:] != low[:-1])])
        high, split = np.cumsum(changes).astype(np.uint64), last
    return order


def _link_compiled(n: int, grams: list[Grams], links: list[_Links]) -> _Links:
    """Walk once along this order and the one below it, both sorted."""
    from nextword.formats.arpa import trie_kernels as kernels

    rows, above = grams[n - 1].rows, grams[n - 2].rows
    parents = np.empty(len(rows), dtype=np.int64)
    children = np.empty(len(above) + 1, dtype=np.uint64 if len(rows) >= 1 << 32 else np.uint32)
    missing, twice = kernels.link(rows, above, children, parents)
    words = np.ascontiguousarray(rows[:, -1])
    if n == 2:
        return _Links(parents, words.astype(np.int64), children, int(missing), 0, int(twice))
    found = np.empty(len(rows), dtype=np.int64)
    suffixes = np.append(links[-1].suffixes, -1)  # the suffix of a missing parent, -1, is missing
    absent = kernels.suffixes(words, parents, suffixes, links[-1].children, above[:, -1].copy(), found)
    return _Links(parents, found, children, int(missing), int(absent), int(twice))


# ---- what is missing ------------------------------------------------------------------------------------


def _closed(grams: list[Grams], links: list[_Links]) -> list[Grams]:
    """Return the same n-grams and, for each whose prefix or suffix is missing, all pieces of it."""
    extra: list[list[Array]] = [[] for _ in grams]
    for n in range(3, len(grams) + 1):
        found = links[n - 2]
        rows = grams[n - 1].rows[(found.parents < 0) | (found.suffixes < 0)]
        for m in range(2, n):
            extra[m - 1] += [rows[:, first : first + m] for first in range(n - m + 1)]
    result = []
    for n, (old, new) in enumerate(zip(grams, extra, strict=True), start=1):
        added = np.unique(np.concatenate(new), axis=0) if new else np.empty((0, n), dtype=np.int32)
        ones = np.ones(len(added), dtype=np.float32)
        weights = old.backoffs if n == len(grams) else np.concatenate([old.backoffs, ones])
        origin = np.arange(len(old.rows)) if old.origin is None else old.origin
        origin = np.concatenate([origin, np.full(len(added), _ADDED)])
        rows, probs = np.concatenate([old.rows, added]), np.concatenate([old.probs, ones])
        result.append(Grams(rows, probs, weights, origin))
    return result


def _without_twins(grams: list[Grams], real: list[int]) -> list[Grams]:
    """Drop added rows that were there already: of equal neighbours the one that was added."""
    kept = []
    for level in grams:
        assert level.origin is not None
        same = (level.rows[1:] == level.rows[:-1]).all(axis=1)
        keep = np.ones(len(level.rows), dtype=bool)
        added = level.origin == _ADDED
        keep[1:][same & added[1:]] = False
        keep[:-1][same & ~added[1:]] = False
        kept.append(level.take(np.flatnonzero(keep)))
    return kept


_ADDED = 1 << 62  # the origin of a row that the file does not have


def _level(n: int, grams: list[Grams], links: list[_Links]) -> Level:
    level = grams[n - 1]
    words = np.ascontiguousarray(level.rows[:, -1], dtype=np.int32)
    if n == len(grams):
        return Level(words, level.probs, None, None)
    return Level(words, level.probs, level.backoffs, links[n - 1].children)


def _fill(trie: Trie, grams: list[Grams], links: list[_Links], real: list[int]) -> None:
    """Compute p of added n-grams, shortest first: weight of the prefix times p of the suffix."""
    for n in range(2, trie.order + 1):
        level, above, found, origin = (
            trie.levels[n - 1],
            trie.levels[n - 2],
            links[n - 2],
            grams[n - 1].origin,
        )
        assert above.backoffs is not None
        assert origin is not None
        new = np.flatnonzero(origin == _ADDED)
        level.probs[new] = above.backoffs[found.parents[new]] * above.probs[found.suffixes[new]]

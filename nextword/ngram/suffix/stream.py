"""Construction, streams and bulk queries through the compiled kernels of a suffix array, in threads.

A stream is cut at START, so that every piece can be searched independently. The last few tokens of a query
are searched first; those that match completely are searched again with more.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from nextword.ngram.fast import kernels
from nextword.ngram.fast.estimate import cores, even_edges, in_ranges
from nextword.ngram.fast.scoring import _edges
from nextword.ngram.suffix import kernels as suffix_kernels
from nextword.ngram.suffix.array import SuffixArray, damaged, finished, strides
from nextword.ngram.suffix.queries import walk
from nextword.ngram.suffix.search import BLOCK, match_rows
from nextword.ngram.suffix.walk import Matches, UnboundedState

if TYPE_CHECKING:
    from nextword.ngram.unbounded import UnboundedModel

Array = np.ndarray[Any, np.dtype[Any]]
Carry = tuple[Array, Array, Array]  # the intervals of a block, and the longest match
_SLICES = 3  # of the vocabulary per thread when building; the text is read once for each
_PIECE = 1 << 14  # tokens a thread takes at a time
_QUERIES = 1 << 12  # queries a thread takes at a time
_FEW = 6  # tokens of a context searched first
_TIMES = 4  # as many more each time


def build(ids: Array, vocab_size: int, levels: int) -> SuffixArray:
    """Sort the places of a packed text."""
    ids = np.ascontiguousarray(ids, dtype=np.int32)
    n, bits = len(ids), max(2, int(vocab_size - 1).bit_length())
    with ThreadPoolExecutor(cores()) as pool:
        frequency = np.zeros(vocab_size, dtype=np.int64)
        kernels.histogram(ids, frequency)
        starts = np.concatenate([[0], np.cumsum(frequency)])
        order, shared = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.uint8)

        def sort(low: int, high: int) -> int:
            keys = np.empty(int(starts[high] - starts[low]), dtype=np.uint64)
            suffix_kernels.scatter(ids, bits, low, high, starts, order, keys)
            return int(suffix_kernels.sort_buckets(ids, bits, low, high, starts, order, shared, keys))

        left = in_ranges(pool, sort, even_edges(starts, _SLICES * cores()))
        parts = np.linspace(0, n, 4 * cores() + 1).astype(np.int64)
        if sum(left):
            depth = suffix_kernels.reach(bits)
            ranks = np.empty(n, dtype=np.uint32)
            in_ranges(pool, lambda a, b: suffix_kernels.rank(order, shared, a, b, ranks), parts)
            suffix_kernels.double(order, shared, ranks, depth)
            in_ranges(pool, lambda a, b: suffix_kernels.share_deep(ids, order, shared, a, b, depth), parts)
        marks = np.zeros((levels, strides(n) + 1), dtype=np.uint32)
        edges = np.linspace(0, strides(n), 2 * cores() + 1).astype(np.int64)
        in_ranges(pool, lambda a, b: suffix_kernels.mark(shared, a, b, marks), edges)
        np.cumsum(marks, axis=1, out=marks)
    return finished(ids, order, shared, starts, marks)


class Searcher:
    """Everything a walk needs besides the tokens: the text, the weights, and space for its results."""

    def __init__(self, model: UnboundedModel, count: int) -> None:
        self.model = model
        self.weights = np.array([model.kind, float(model.alone), *model.discounts])
        self.p = np.empty(count, dtype=np.float64)
        self.lengths, self.totals, self.hits = (np.empty(count, dtype=np.int64) for _ in range(3))

    def carry(self) -> Carry:
        """Return space for the intervals of one block, with nothing read."""
        rows = self.model.levels + 2
        low, high = (np.zeros((rows, BLOCK + 1), dtype=np.int64) for _ in range(2))
        return low, high, np.zeros(3, dtype=np.int64)

    def search(self, words: Array, first: int, last: int, carry: Carry | None = None) -> None:
        """Search the tokens first … last-1 and store the results at their places."""
        text = self.model.text
        if not walk(
            text.ids, text.order, text.shared, text.starts, text.marks, text.seconds, words, first, last,
            *(self.carry() if carry is None else carry), self.model.unigrams_V, self.weights,
            self.p, self.lengths, self.totals, self.hits,
        ):  # fmt: skip
            raise damaged()

    def search_all(self, words: Array, edges: Sequence[int]) -> None:
        """Search the pieces between the edges in threads."""
        with ThreadPoolExecutor(cores()) as pool:
            jobs = [pool.submit(self.search, words, a, b) for a, b in pairwise(edges)]
            for job in jobs:
                job.result()


def packed(model: UnboundedModel, ids: Array) -> tuple[Array, Matches]:
    """Return p of every token of a packed stream (1 at START), and what it was taken from."""
    words = np.ascontiguousarray(ids, dtype=np.int32)
    found = Searcher(model, len(words))
    found.search_all(words, _edges(words, _PIECE))
    return found.p, Matches(found.lengths, found.totals, found.hits)


def score(
    model: UnboundedModel, ids_BT: Array, lengths_B: Array, state: UnboundedState
) -> tuple[Array, UnboundedState]:
    """Return p of every token of a batch (1 past a row's end), row by row, and the state after each row."""
    p_BT = np.ones(ids_BT.shape)
    low_BK, high_BK, long_B3 = state.low_BK.copy(), state.high_BK.copy(), state.long_B3.copy()
    found = Searcher(model, ids_BT.shape[1])
    low, high, _ = found.carry()
    for b, length in enumerate(lengths_B.tolist()):
        words = np.ascontiguousarray(ids_BT[b, :length], dtype=np.int32)
        low[1:-1, 0], high[1:-1, 0] = low_BK[b], high_BK[b]
        found.search(words, 0, length, (low, high, long_B3[b]))
        p_BT[b, :length] = found.p[:length]
        low_BK[b], high_BK[b] = low[1:-1, 0], high[1:-1, 0]
    return p_BT, UnboundedState(low_BK, high_BK, long_B3)


def match(model: UnboundedModel, flat: Array, sizes: Array, words: Array) -> Matches:
    """Return the longest match of each concatenated context, and how often each token followed it."""
    lengths, totals, hits = (np.zeros(len(sizes), dtype=np.int64) for _ in range(3))
    ends, text, few = np.cumsum(sizes), model.text, _FEW

    def search(first: int, last: int) -> bool:
        found: bool = match_rows(
            text.ids, text.order, text.shared, text.starts, text.seconds,
            flat, ends, sizes, words, first, last, few, lengths, totals, hits,
        )  # fmt: skip
        return found

    with ThreadPoolExecutor(cores()) as pool:
        if not all(in_ranges(pool, search, np.append(np.arange(0, len(sizes), _QUERIES), len(sizes)))):
            raise damaged()
    asked = np.flatnonzero((lengths == few) & (sizes > few))
    while len(asked):  # the few that continue are followed token by token
        few *= _TIMES
        taken = np.minimum(sizes[asked], few)
        stream, places = _stream(flat, ends[asked], taken, words[asked])
        found = Searcher(model, len(stream))
        cuts = places[_QUERIES - 1 : -1 : _QUERIES] + 1
        found.search_all(stream, [0, *cuts.tolist(), len(stream)])
        for result, values in ((lengths, found.lengths), (totals, found.totals), (hits, found.hits)):
            result[asked] = values[places]
        asked = asked[(found.lengths[places] == taken) & (taken < sizes[asked])]
    return Matches(lengths, totals, hits)


def _stream(flat: Array, ends: Array, taken: Array, words: Array) -> tuple[Array, Array]:
    """Return -1, the last tokens of a context, the token after it; -1, …; and the places of the latter."""
    places = np.cumsum(taken + 2) - 1
    stream = np.full(int(places[-1]) + 1, -1, dtype=np.int32)
    stream[places] = words
    for back in range(1, int(taken.max()) + 1):
        rows = taken >= back
        stream[places[rows] - back] = flat[ends[rows] - back]
    return stream, places

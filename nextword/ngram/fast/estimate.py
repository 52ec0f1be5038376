"""The compiled path from a packed text to probabilities, on all cores.

Same steps and same numbers as the plain path (`counts`, `smoothing`), on flat arrays that the
kernels fill in place; threads share the work by ranges of tokens or of contexts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from nextword.ngram.arrays import Level, Trie
from nextword.ngram.counts import CountLevel, CountTrie
from nextword.ngram.fast import interpolation_kernels, kernels
from nextword.ngram.smoothing.plan import Plan

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class FlatCounts:
    """The levels of a count trie, concatenated in flat arrays; `begins[n]` is the start of level n."""

    vocab_size: int
    order: int
    begins: Array  # int64, index 1 … order+1
    words: Array  # int32
    children: Array  # uint32; level n has one more entry than nodes, so it starts n-1 places later
    counts: Array  # uint32, of the orders from `raw_from` on
    adjusted: Array  # uint32, of the orders below the highest; empty if not requested
    raw_from: int

    def size(self, n: int) -> int:
        """Return the number of n-grams of order n."""
        return int(self.begins[n + 1] - self.begins[n])

    def of(self, n: int, flat: Array) -> Array:
        """Return the part of a flat array that belongs to order n."""
        return flat[self.begins[n] : self.begins[n + 1]]

    def words_of(self, n: int) -> Array:
        """Return the last tokens of the n-grams of order n."""
        return self.of(n, self.words)

    def counts_of(self, n: int) -> Array:
        """Return the count of each n-gram of order n."""
        start = self.begins[self.raw_from]
        return self.counts[self.begins[n] - start : self.begins[n + 1] - start]

    def children_of(self, n: int) -> Array | None:
        """Return the start of the extensions of each n-gram of order n; None at the highest order."""
        if n == self.order:
            return None
        first = self.begins[n] + n - 1
        return self.children[first : first + self.size(n) + 1]

    def trie(self) -> CountTrie:
        """Convert to the plain path's trie (needs the counts of all orders)."""
        levels = []
        for n in range(1, self.order + 1):
            children = self.children_of(n)
            counts = self.counts_of(n).astype(np.int64)
            adjusted = (
                self.of(n, self.adjusted).astype(np.int64)
                if n < self.order and len(self.adjusted)
                else counts
            )
            levels.append(
                CountLevel(
                    self.words_of(n),
                    counts,
                    adjusted,
                    None if children is None else children.astype(np.int64),
                )
            )
        return CountTrie(tuple(levels), self.vocab_size)


def cores() -> int:
    """Return the number of threads the kernels may use."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def in_ranges(pool: ThreadPoolExecutor, work: Callable[..., Any], edges: Array) -> list[Any]:
    """Call ``work(low, high)`` for all neighbouring edges, in threads."""
    jobs = [pool.submit(work, int(a), int(b)) for a, b in pairwise(edges) if a < b]
    return [job.result() for job in jobs]


def even_edges(weights_before: Array, parts: int) -> Array:
    """Split 0 … n into ranges of about equal weight, given the running sum of the weights."""
    total = int(weights_before[-1])
    cuts = np.searchsorted(weights_before, np.linspace(0, total, parts + 1)[1:-1])
    return np.unique(np.concatenate([[0], cuts, [len(weights_before) - 1]]))


def count(ids: Array, vocab_size: int, order: int, adjusted: bool = True, raw: bool = True) -> FlatCounts:
    """Count all n-grams up to `order`; `adjusted` and `raw` say which counts are needed."""
    ids = np.ascontiguousarray(ids, dtype=np.int32)
    with ThreadPoolExecutor(cores()) as pool:
        starts, positions, shape, edges, sizes = _sorted_positions(pool, ids, vocab_size, order)
        return _fill(pool, ids, vocab_size, order, (starts, positions, shape, edges, sizes), adjusted, raw)


def _sorted_positions(
    pool: ThreadPoolExecutor, ids: Array, vocab_size: int, order: int
) -> tuple[Array, Array, Array, Array, Array]:
    frequency = np.zeros(vocab_size, dtype=np.int64)
    kernels.histogram(ids, frequency)
    starts = np.concatenate([[0], np.cumsum(frequency)])
    positions, shape = np.empty(len(ids), dtype=np.uint32), np.empty(len(ids), dtype=np.uint8)
    cursor = starts[:-1].copy()
    in_ranges(pool, lambda a, b: kernels.scatter(ids, a, b, cursor, positions), even_edges(starts, cores()))
    edges = even_edges(starts, 4 * cores())
    bits = max(2, int(vocab_size - 1).bit_length())

    def sort(low: int, high: int) -> Array:
        sizes = np.zeros(order + 2, dtype=np.int64)
        kernels.sort_words(ids, order, bits, low, high, starts, positions, shape, sizes)
        return sizes

    return starts, positions, shape, edges, np.stack(in_ranges(pool, sort, edges))


def _fill(
    pool: ThreadPoolExecutor,
    ids: Array,
    vocab_size: int,
    order: int,
    found: tuple[Array, Array, Array, Array, Array],
    adjusted: bool,
    raw: bool,
) -> FlatCounts:
    starts, positions, shape, edges, sizes = found
    sizes[:, 1] = 0
    totals = sizes.sum(axis=0)
    totals[1] = vocab_size
    begins = np.zeros(order + 2, dtype=np.int64)
    begins[2:] = np.cumsum(totals[1 : order + 1])
    first = np.concatenate([np.zeros((1, order + 2), dtype=np.int64), np.cumsum(sizes, axis=0)])[:-1]
    raw_from = 1 if raw else order
    words = np.empty(begins[order + 1], dtype=np.int32)
    words[:vocab_size] = np.arange(vocab_size)
    counts = _zeroed(int(begins[order + 1] - begins[raw_from]), int(begins[1 + (raw_from == 1)]))
    left = _zeroed(int(begins[order]) if adjusted and order > 1 else 0, vocab_size)
    children = np.empty(begins[order] + order, dtype=np.uint32)
    at = {int(low): first[i] for i, low in enumerate(edges[:-1])}
    in_ranges(
        pool,
        lambda a, b: kernels.fill(
            ids,
            order,
            a,
            b,
            starts,
            positions,
            shape,
            begins,
            at[a],
            raw_from,
            len(left) > 0,
            words,
            counts,
            left,
            children,
        ),
        edges,
    )
    for n in range(1, order):
        children[begins[n + 1] + n - 1] = totals[n + 1]
    return FlatCounts(vocab_size, order, begins, words, children, counts, left, raw_from)


def _zeroed(size: int, head: int) -> Array:
    """Allocate an array and clear only its head: tokens that never occur count 0, the rest is overwritten."""
    array = np.empty(size, dtype=np.uint32)
    array[:head] = 0
    return array


def interpolated(flat: FlatCounts, plan: Plan, thresholds: list[float]) -> Trie:
    """Compute probabilities by a plan, in float32 as stored; `thresholds` are for n-grams to be dropped."""
    levels = [Level(flat.words_of(1), plan.unigrams.astype(np.float32), None, flat.children_of(1))]
    nothing: Array = np.empty(0, dtype=np.uint32)
    links = shorter = nothing
    with ThreadPoolExecutor(cores()) as pool:
        for n in range(2, flat.order + 1):
            below, children, words = levels[-1], flat.children_of(n - 1), flat.words_of(n)
            assert children is not None
            values = flat.of(n, flat.adjusted) if plan.adjusted and n < flat.order else flat.counts_of(n)
            plain = flat.counts_of(n) if thresholds[n - 1] > 0 else nothing
            probs, gamma = np.empty(len(words), dtype=np.float32), np.empty(len(below), dtype=np.float32)
            new_links = np.empty(len(words) if n < flat.order and plan.below is None else 0, dtype=np.uint32)
            given = below.probs if plan.below is None else plan.below.astype(np.float32)
            arrays = (
                children,
                words,
                values,
                plan.discounts[n - 1],
                plan.kinds,
                plan.extra[n - 1],
                plain,
                thresholds[n - 1],
                links,
                shorter,
                below.words,
                given,
            )
            in_ranges(
                pool,
                partial(_interpolate, arrays, (probs, gamma, new_links)),
                even_edges(children, 4 * cores()),
            )
            links, shorter = new_links, children
            if plan.weight is not None:
                gamma.fill(plan.weight)
            levels[-1] = Level(below.words, below.probs, gamma, children)
            levels.append(Level(words, probs, None, None))
    return Trie(tuple(levels), plan.fallback)


def _interpolate(arrays: tuple[Any, ...], into: tuple[Array, ...], first: int, last: int) -> None:
    work: Callable[..., Any] = interpolation_kernels.interpolate
    work(*arrays, first, last, *into)


def counts_of_counts(values: Array) -> Array:
    """Return n_0 … n_4: the number of n-grams with each of these counts."""
    found = np.zeros(5, dtype=np.int64)
    interpolation_kernels.counts_of_counts(values, 0, len(values), found)
    return found.astype(np.float64)

"""Hash tables of all n-grams of a model: one memory access per token of context.

The trie on disk opens instantly and is searched by bisection; scoring many millions of tokens is faster
with an index in memory. An entry of 16 bytes holds the context (its place in the table of the level
below), the token, the probability and the backoff weight, so that a lookup touches one cache line.
The plain version is `NgramModel.explain_packed`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nextword.core.contracts import START
from nextword.core.errors import DamagedError
from nextword.ngram.arrays import Trie
from nextword.ngram.settings import LONGEST
from nextword.system.compiled import compiled

Array = np.ndarray[Any, np.dtype[Any]]
_START = START
_BLOCK = 512
_EMPTY = np.uint32(2**32 - 1)
ENTRY = 16  # bytes
ROOM = 1.6  # places per n-gram: fewer make searches longer
SPILL = 4096  # places after the last one, so that a search never wraps around


@dataclass(frozen=True)
class Index:
    """One table per order from 2 on; column 0 context, 1 token, 2 probability, 3 backoff weight."""

    tables: Sequence[Array]  # uint32 [places, 4]; the last two columns are float32 bits

    @property
    def nbytes(self) -> int:
        """Memory of the tables."""
        return sum(table.nbytes for table in self.tables)


def bytes_needed(trie: Trie) -> int:
    """Return the memory `build` will take."""
    return int(sum(trie.sizes[1:]) * (ROOM * ENTRY + 4))


def build(trie: Trie, threads: int = 1) -> Index:
    """Put every n-gram into its table, order by order: a context is identified by its place."""
    places: Array = np.arange(trie.vocab_size, dtype=np.uint32)
    tables = []
    with ThreadPoolExecutor(threads) as pool:
        for n in range(2, trie.order + 1):
            table, places = _build_level(trie, n, places, pool, threads)
            tables.append(table)
    return Index(tables)


def _build_level(
    trie: Trie, n: int, places: Array, pool: ThreadPoolExecutor, threads: int
) -> tuple[Array, Array]:
    """Return the table of order n, and the place of each n-gram in it."""
    below, level = trie.levels[n - 2], trie.levels[n - 1]
    children = below.children
    assert children is not None
    if children[0] != 0 or children[-1] != len(level) or np.any(children[1:] < children[:-1]):
        raise DamagedError("the offsets of the n-gram arrays point outside them; train the run again")
    size = int(len(level) * ROOM) + 8
    table = np.full((size + SPILL, 4), _EMPTY, dtype=np.uint32)
    backoffs = np.empty(0, dtype=np.float32) if level.backoffs is None else level.backoffs
    found = np.full(len(level), _EMPTY, dtype=np.uint32)
    work = partial(
        _insert, children, level.words, level.probs, backoffs, places,
        table, table.view(np.float32), found, size,
    )  # fmt: skip
    # Threads own ranges of places; whatever would spill into the next range waits for a last round.
    edges = [size * k // threads for k in range(threads + 1)]
    end = size + SPILL - 1  # the last place stays empty, so that every search ends
    good = list(pool.map(work, edges[:-1], [*edges[1:-1], end]))
    if not all(good) or not work(0, end) or np.any(found == _EMPTY):
        raise DamagedError("the n-gram arrays are damaged or contain an n-gram twice; train the run again")
    return table, found


@compiled(nogil=True)
def place_of(context, word, size):  # type: ignore[no-untyped-def]
    """Return where an n-gram belongs: 32 mixed bits, scaled to the size of the table."""
    mixed = (np.uint64(context) << np.uint64(32) | np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    return np.int64(((mixed >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))


@compiled(nogil=True)
def _insert(  # type: ignore[no-untyped-def]
    children, words, probs, backoffs, places, table, numbers, found, size, low, high
):
    """Insert what is still missing and belongs to the places low … high-1, if there is room before high."""
    contexts, at, which = np.empty(_BLOCK, np.uint32), np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    context, touched, count = 0, np.int64(0), 0
    for i in range(len(words)):
        while context + 1 < len(children) and np.int64(children[context + 1]) <= i:
            context += 1
        if context >= len(places):
            return False
        place = place_of(places[context], words[i], size)
        contexts[count], at[count], which[count] = places[context], place, i
        count += (low <= place < high) & (found[i] == _EMPTY)
        if count == _BLOCK or i == len(words) - 1:
            for k in range(count):  # read only, so that cache misses overlap
                touched += table[at[k], 1]
            for k in range(count):
                place = at[k]
                while place < high and table[place, 1] != _EMPTY:
                    place += 1
                if place < high:
                    table[place, 0], table[place, 1] = contexts[k], words[which[k]]
                    numbers[place, 2] = probs[which[k]]
                    numbers[place, 3] = backoffs[which[k]] if len(backoffs) > 0 else 1.0
                    found[which[k]] = place
            count = 0
    return touched >= 0


@compiled(nogil=True)
def _level(part, contexts, weights, table, numbers, at, places, own, p):  # type: ignore[no-untyped-def]
    """Add one token of context to the tokens of a block.

    ``contexts[k]`` is the place of token k's context (-1: none) and ``weights[k]`` its backoff
    weight. ``places[k]`` becomes the n-gram's place, ``own[k]`` its weight; p[k] its probability,
    or p[k] times the context's weight where the n-gram was never seen.
    """
    size, touched = len(table) - SPILL, np.int64(0)
    for k in range(len(part)):
        at[k] = place_of(max(contexts[k], 0), part[k], size)
    for k in range(len(part)):  # read only, so that cache misses overlap
        touched += table[at[k], 1]
    for k in range(len(part)):
        places[k] = -1
        if contexts[k] >= 0:
            place, context, word = at[k], np.uint32(contexts[k]), np.uint32(part[k])
            while table[place, 1] != _EMPTY and (table[place, 1] != word or table[place, 0] != context):
                place += 1
            if table[place, 1] == word:
                places[k], own[k], p[k] = place, numbers[place, 3], numbers[place, 2]
            else:
                p[k] *= weights[k]
    return touched


@compiled(nogil=True)
def _score(ids, low, high, order, probs, backoffs, tables, numbers, logp):  # type: ignore[no-untyped-def]
    """Score the tokens low … high-1, block by block."""
    places = np.full((order, _BLOCK), -1, np.int64)
    own = np.ones((order, _BLOCK), np.float32)
    contexts, weights = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.float32)
    at, p = np.empty(_BLOCK, np.int64), np.empty(_BLOCK)
    last, last_own = np.full(order, -1, np.int64), np.ones(order, np.float32)
    for first in range(low, high, _BLOCK):
        count = min(_BLOCK, high - first)
        part = ids[first : first + count]
        for k in range(count):
            p[k], places[0, k] = probs[part[k]], part[k]
            own[0, k] = backoffs[part[k]] if len(backoffs) > 0 else 1.0
        for n in range(1, order):
            contexts[0], weights[0] = last[n - 1], last_own[n - 1]
            for k in range(1, count):
                contexts[k], weights[k] = places[n - 1, k - 1], own[n - 1, k - 1]
            for k in range(count):
                contexts[k] = -1 if part[k] == _START else contexts[k]
            last[n - 1], last_own[n - 1] = places[n - 1, count - 1], own[n - 1, count - 1]
            _level(part, contexts, weights, tables[n], numbers[n], at, places[n], own[n], p)
        for k in range(count):
            logp[first + k] = np.log(p[k]) if part[k] != _START else 0.0


def score_range(trie: Trie, index: Index, ids: Array, logp: Array, low: int, high: int) -> bool:
    """Write log p of the tokens low … high-1 (starting at a START) into `logp`."""
    # Always pass as many tables as the highest order has: one compiled kernel serves all.
    none = np.full((1 + SPILL, 4), _EMPTY, dtype=np.uint32)
    tables = (none, *index.tables, *([none] * (LONGEST - 1 - len(index.tables))))
    numbers = tuple(table.view(np.float32) for table in tables)
    first = trie.levels[0]
    backoffs = np.empty(0, dtype=np.float32) if first.backoffs is None else first.backoffs
    _score(ids, low, high, trie.order, first.probs, backoffs, tables, numbers, logp)
    return True

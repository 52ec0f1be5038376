"""Compiled scoring of long streams: blocks of tokens go through the trie level by level.

Within a level no token waits for another, so the searches of a block overlap in memory. The plain
twin is `NgramModel.explain_packed`; a test compares them. Every offset read from a file is checked
against its array before it is used.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit

from nextword.core.contracts import START
from nextword.core.errors import DamagedError

if TYPE_CHECKING:
    from nextword.ngram.model import NgramModel

Array = np.ndarray[Any, np.dtype[Any]]
_START = START
_BLOCK = 4096
_ROUNDS = 3  # of halving, before finished searches are taken out
_PIECE = 1 << 17  # tokens a thread takes at a time


@njit(cache=True, nogil=True)
def walk_level(  # type: ignore[no-untyped-def]
    ids, first, count, n, before, children, words, backoffs, table, at, p, longest,
    low, end, length, place, wanted,
):
    """One more word of context for `count` tokens from `first` on.

    ``before[k]`` is the node of the context of token first+k (-1: none); ``at[k]`` becomes the node
    of the n-gram. Where there is one, ``longest[k]`` becomes n and p[k] 1; where there is none, p[k]
    is multiplied by the context's backoff weight. Returns False if an offset points outside the level.
    """
    size = len(words)
    if size == 0:  # no n-gram is so long
        for k in range(count):
            at[k] = -1
            p[k] *= backoffs[before[k]] if before[k] >= 0 else 1.0
        return True
    for k in range(count):  # only read: without a branch the cache misses overlap
        node = max(before[k], 0)
        low[k], end[k] = children[node], children[node + 1]
    if len(table) > 0:
        _look_up(ids, first, count, before, words, table, at, low, end, length, place)
    left = 0
    for k in range(count):  # what is to be searched
        start, after = low[k], end[k]
        if start > after or start < 0 or after > size:
            return False
        if len(table) > 0:
            continue
        at[k] = -1
        low[left], length[left], wanted[left], place[left] = start, after - start, ids[first + k], k
        left += (before[k] >= 0) & (start < after) & (ids[first + k] != _START)
    while left > 0:
        for _ in range(_ROUNDS):  # halve every range
            for q in range(left):
                half = length[q] >> 1
                middle = low[q] + half
                low[q] = middle if words[middle] <= wanted[q] else low[q]
                length[q] -= half
        kept = 0
        for q in range(left):  # the last word that is not larger is found
            k = place[q]
            at[k] = low[q] if words[low[q]] == wanted[q] else -1  # for the time being, where more is left
            low[kept], length[kept], wanted[kept], place[kept] = low[q], length[q], wanted[q], k
            kept += length[q] > 1
        left = kept
    for k in range(count):  # entry 0 stands for "nothing to read": it is always near
        weight = np.float64(backoffs[before[k] if at[k] < 0 and before[k] >= 0 else 0])
        p[k] = 1.0 if at[k] >= 0 else (p[k] * weight if before[k] >= 0 else p[k])
        longest[k] = n if at[k] >= 0 else longest[k]
    return True


@njit(cache=True, nogil=True)
def _slot(context, word, mask):  # type: ignore[no-untyped-def]
    mixed = np.uint64(context) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= np.uint64(word) * np.uint64(0xC2B2AE3D27D4EB4F)
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(mask))


@njit(cache=True, nogil=True)
def _look_up(ids, first, count, before, words, table, at, low, end, slot, found):  # type: ignore[no-untyped-def]
    """Nodes of pairs by hashing: the lists behind frequent words are too long to halve at speed."""
    mask, touched = len(table) - 1, np.int64(0)
    for k in range(count):
        slot[k] = _slot(max(before[k], 0), ids[first + k], mask)
        found[k] = table[slot[k]]
    for k in range(count):
        touched += words[max(found[k] - 1, 0)]
    for k in range(count):
        at[k] = -1
        entry, place, word = found[k], slot[k], ids[first + k]
        while entry > 0 and before[k] >= 0 and word != _START:
            if low[k] <= entry - 1 < end[k] and words[entry - 1] == word:
                at[k] = entry - 1
                break
            place = (place + 1) & mask
            entry = np.int64(table[place])
    return touched


@njit(cache=True, nogil=True)
def _hash_pairs(children, words, table):  # type: ignore[no-untyped-def]
    """Put every pair into the table (node + 1; 0 is empty); False if an offset is outside."""
    mask = len(table) - 1
    for context in range(len(children) - 1):
        start, after = np.int64(children[context]), np.int64(children[context + 1])
        if start > after or after > len(words):
            return False
        for i in range(start, after):
            place = _slot(context, words[i], mask)
            while table[place] > 0:
                place = (place + 1) & mask
            table[place] = i + 1
    return True


@njit(cache=True, nogil=True)
def settle(count, n, nodes, probs, longest, p):  # type: ignore[no-untyped-def]
    """Multiply by the probability of the longest n-gram, where that has n words."""
    for k in range(count):
        p[k] *= probs[nodes[k]] if longest[k] == n else np.float32(1.0)


@njit(cache=True, nogil=True)
def contexts(nodes, count, carry, part, before):  # type: ignore[no-untyped-def]
    """Nodes of the contexts: those of the token before, none at START; returns the last, to carry on."""
    before[0] = carry if part[0] != _START else -1
    for k in range(1, count):
        before[k] = nodes[k - 1] if part[k] != _START else -1
    return nodes[count - 1]


def score_packed(model: NgramModel, ids: Array) -> Array:
    """Log p of every word; pieces that begin at a START go to threads."""
    from nextword.ngram.fast import cores

    ids = np.ascontiguousarray(ids, dtype=np.int32)
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= model.vocab_size):
        raise ValueError(f"word ids must be in 0 … {model.vocab_size - 1}")
    logp = np.empty(len(ids), dtype=np.float64)
    if model.trie.fallback != "shorter":
        return _by_pieces(model, ids, logp)
    edges, table = _edges(ids, _PIECE), _pairs(model, len(ids))
    with ThreadPoolExecutor(cores()) as pool:
        jobs = [pool.submit(partial(_score_piece, model, table, ids, logp, a, b)) for a, b in pairwise(edges)]
        if not all(job.result() for job in jobs):
            raise DamagedError("the offsets of the n-gram arrays point outside them; train the run again")
    return logp


_scored: WeakKeyDictionary[NgramModel, int] = WeakKeyDictionary()
_tables: WeakKeyDictionary[NgramModel, Array] = WeakKeyDictionary()


def _pairs(model: NgramModel, tokens: int) -> Array:
    """The hash table of a model's pairs; empty until so much was scored that it pays to build one."""
    if model in _tables:
        return _tables[model]
    _scored[model] = _scored.get(model, 0) + tokens
    table: Array = np.empty(0, dtype=np.uint32)
    if model.order > 1 and _scored[model] > len(model.trie.levels[1]) > 1000:
        size = len(model.trie.levels[1])
        table = np.zeros(1 << int(2 * size).bit_length(), dtype=np.uint32 if size < 2**32 - 1 else np.uint64)
        if not _hash_pairs(model.trie.levels[0].children, model.trie.levels[1].words, table):
            raise DamagedError("the offsets of the n-gram arrays point outside them; train the run again")
        _tables[model] = table
    return table


def _edges(ids: Array, piece: int) -> list[int]:
    """Cuts of about `piece` tokens, each at a START, so that every piece can be scored alone."""
    starts = np.flatnonzero(ids == START)
    if not len(starts):
        return [0, len(ids)]
    cuts = starts[np.searchsorted(starts, np.arange(piece, len(ids), piece)).clip(max=len(starts) - 1)]
    return [int(cut) for cut in np.unique(np.concatenate([[0], cuts, [len(ids)]]))]


def _by_pieces(model: NgramModel, ids: Array, logp: Array) -> Array:
    """Smoothings that do not back off word by word: the plain way, in bounded pieces."""
    for a, b in pairwise(_edges(ids, _PIECE)):
        logp[a:b] = model.explain_packed(ids[a:b])[0]
    return logp


def _score_piece(model: NgramModel, table: Array, ids: Array, logp: Array, low: int, high: int) -> bool:
    levels = model.trie.levels
    nodes = [np.empty(_BLOCK, dtype=np.int64) for _ in levels]
    before, longest = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int64)
    work = (*(np.empty(_BLOCK, dtype=np.int64) for _ in range(4)), np.empty(_BLOCK, dtype=np.int32))
    carry, nothing, p = [-1] * len(levels), table[:0], np.empty(_BLOCK)
    for first in range(low, high, _BLOCK):
        count = min(_BLOCK, high - first)
        part = ids[first : first + count]
        p[:count], longest[:count], nodes[0][:count] = 1.0, 1, part
        for n in range(1, len(levels)):
            level, below = levels[n], levels[n - 1]
            carry[n - 1] = contexts(nodes[n - 1], count, carry[n - 1], part, before)
            arrays = (below.children, level.words, below.backoffs, table if n == 1 else nothing)
            if not walk_level(ids, first, count, n + 1, before, *arrays, nodes[n], p, longest, *work):
                return False
        for n, level in enumerate(levels):
            settle(count, n + 1, nodes[n], level.probs, longest, p)
        p[:count][part == START] = 1.0
        with np.errstate(divide="ignore"):
            np.log(p[:count], out=logp[first : first + count])
    return True

"""Compiled scoring of long streams: blocks of tokens pass through the trie level by level.

Within a level no token waits for another, so the searches of a block overlap in memory. The plain
version is `NgramModel.explain_packed`; a test compares them. Every offset read from a file is checked
against its array before use.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from nextword.core.contracts import START
from nextword.core.errors import DamagedError
from nextword.ngram.settings import LONGEST
from nextword.system.compiled import compiled

if TYPE_CHECKING:
    from nextword.ngram.fast.index import Index
    from nextword.ngram.model import NgramModel

Array = np.ndarray[Any, np.dtype[Any]]
_START = START
_BLOCK = 512  # its arrays stay in the L1 cache
_ROUNDS = 3  # bisection steps before finished searches are removed
_PIECE = 1 << 17  # tokens a thread takes at a time


@compiled(nogil=True)
def walk_level(  # type: ignore[no-untyped-def]
    part, n, before, children, words, backoffs, at, p, longest, low, end, length, place, wanted
):
    """Add one token of context to the tokens of a block.

    ``before[k]`` is the node of the context of token k (-1: none); ``at[k]`` becomes the node
    of the n-gram. Where there is one, ``longest[k]`` becomes n and p[k] 1; where there is none, p[k]
    is multiplied by the context's backoff weight. Returns False if an offset points outside the level.
    """
    size, count = len(words), len(part)
    if size == 0:  # no n-gram is this long
        for k in range(count):
            at[k] = -1
            p[k] *= backoffs[before[k]] if before[k] >= 0 else 1.0
        return True
    for k in range(count):  # read only: without branches the cache misses overlap
        node = max(before[k], 0)
        low[k], end[k] = children[node], children[node + 1]
    left = 0
    for k in range(count):  # collect the searches
        start, after = low[k], end[k]
        if start > after or start < 0 or after > size:
            return False
        at[k] = -1
        low[left], length[left], wanted[left], place[left] = start, after - start, part[k], k
        left += (before[k] >= 0) & (start < after) & (part[k] != _START)
    while left > 0:
        for _ in range(_ROUNDS):  # halve every range
            for q in range(left):
                half = length[q] >> 1
                low[q] += half * (words[low[q] + half] <= wanted[q])
                length[q] -= half
        kept = 0
        for q in range(left):  # the last token that is not larger is found
            k = place[q]
            at[k] = (low[q] + 1) * (words[low[q]] == wanted[q]) - 1  # provisional while a search continues
            low[kept], length[kept], wanted[kept], place[kept] = low[q], length[q], wanted[q], k
            kept += length[q] > 1
        left = kept
    for k in range(count):  # entry 0 means "nothing to read": it is always cached
        found, missed = at[k] >= 0, (at[k] < 0) & (before[k] >= 0)
        weight = np.float64(backoffs[before[k] * missed])
        p[k] = found + (1 - found) * p[k] * (missed * weight + (1 - missed))
        longest[k] += found * (n - longest[k])
    return True


@compiled(nogil=True)
def settle(count, n, nodes, probs, longest, p):  # type: ignore[no-untyped-def]
    """Multiply by the probability of the longest n-gram, if that has n tokens."""
    for k in range(count):
        here = longest[k] == n
        p[k] *= here * np.float64(probs[nodes[k] * here]) + (1 - here)


@compiled(nogil=True)
def contexts(nodes, count, carry, part, before):  # type: ignore[no-untyped-def]
    """Set the nodes of the contexts: those of the token before, none at START; return the last one."""
    before[0] = carry if part[0] != _START else -1
    for k in range(1, count):
        before[k] = nodes[k - 1] if part[k] != _START else -1
    return nodes[count - 1]


def score_packed(model: NgramModel, ids: Array) -> Array:
    """Return log p of every token; pieces that start at a START are scored in threads."""
    from nextword.ngram.fast.estimate import cores

    ids = np.ascontiguousarray(ids, dtype=np.int32)
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= model.vocab_size):
        raise ValueError(f"token ids must be in 0 … {model.vocab_size - 1}")
    logp = np.empty(len(ids), dtype=np.float64)
    if model.trie.fallback != "shorter":
        return _by_pieces(model, ids, logp)
    edges, index = _edges(ids, _PIECE), _index_for(model, len(ids))
    score = _score_piece if index is None else partial(_score_indexed, index)
    with ThreadPoolExecutor(cores()) as pool:
        jobs = [pool.submit(score, model, ids, logp, a, b) for a, b in pairwise(edges)]
        if not all(job.result() for job in jobs):
            raise DamagedError("the offsets of the n-gram arrays point outside them; train the run again")
    return logp


_scored: WeakKeyDictionary[NgramModel, int] = WeakKeyDictionary()
_indexes: WeakKeyDictionary[NgramModel, Index] = WeakKeyDictionary()


def populate(model: NgramModel) -> Index | None:
    """Load all n-grams of a model into memory, for fast scoring; None if its smoothing does not back off."""
    from nextword.ngram.fast import index
    from nextword.ngram.fast.estimate import cores

    if model not in _indexes and model.trie.fallback == "shorter" and max(model.trie.sizes) < 2**31:
        _indexes[model] = index.build(model.trie, cores())
    return _indexes.get(model)


def _index_for(model: NgramModel, tokens: int) -> Index | None:
    """Return the index once enough was scored to make building it worthwhile and memory allows."""
    if model in _indexes:
        return _indexes[model]
    _scored[model] = _scored.get(model, 0) + tokens
    if 2 * _scored[model] < sum(model.trie.sizes) or model.order == 1:
        return None
    from nextword.ngram.fast import index

    return populate(model) if 3 * index.bytes_needed(model.trie) < free_memory() else None


def free_memory() -> int:
    """Return the bytes available without swapping or eviction; 0 if the system does not say."""
    try:
        with open("/proc/meminfo", "rb") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(b"MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return 0


def _edges(ids: Array, piece: int) -> list[int]:
    """Return cuts of about `piece` tokens, each at a START, so that pieces can be scored independently."""
    starts = np.flatnonzero(ids == START)
    if not len(starts):
        return [0, len(ids)]
    cuts = starts[np.searchsorted(starts, np.arange(piece, len(ids), piece)).clip(max=len(starts) - 1)]
    return [int(cut) for cut in np.unique(np.concatenate([[0], cuts, [len(ids)]]))]


def _by_pieces(model: NgramModel, ids: Array, logp: Array) -> Array:
    """Score in bounded pieces with the plain path, for smoothings that do not back off token by token."""
    for a, b in pairwise(_edges(ids, _PIECE)):
        logp[a:b] = model.explain_packed(ids[a:b])[0]
    return logp


@compiled(nogil=True)
def _score_range(ids, low, high, order, words, probs, backoffs, children, logp):  # type: ignore[no-untyped-def]
    """Score the tokens low … high-1, block by block; False if an offset points outside its level."""
    nodes = np.full((order, _BLOCK), -1, np.int64)
    before, longest = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int32)
    start, end, place = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int32)
    length, wanted, p = np.empty(_BLOCK, np.int32), np.empty(_BLOCK, np.int32), np.empty(_BLOCK)
    carry = np.full(order, -1, np.int64)
    for first in range(low, high, _BLOCK):
        count = min(_BLOCK, high - first)
        part = ids[first : first + count]
        for k in range(count):
            p[k], longest[k], nodes[0, k] = 1.0, 1, part[k]
        for n in range(1, order):
            carry[n - 1] = contexts(nodes[n - 1], count, carry[n - 1], part, before)
            if not walk_level(
                part, n + 1, before, children[n - 1], words[n], backoffs[n - 1],
                nodes[n], p, longest, start, end, length, place, wanted,
            ):  # fmt: skip
                return False
        for n in range(order):
            settle(count, n + 1, nodes[n], probs[n], longest, p)
        for k in range(count):
            logp[first + k] = np.log(p[k]) if part[k] != _START else 0.0
    return True


def _score_indexed(index: Index, model: NgramModel, ids: Array, logp: Array, low: int, high: int) -> bool:
    from nextword.ngram.fast.index import score_range

    return score_range(model.trie, index, ids, logp, low, high)


def _score_piece(model: NgramModel, ids: Array, logp: Array, low: int, high: int) -> bool:
    # Always pass as many arrays as the highest order has: one compiled kernel serves all.
    levels, rest = model.trie.levels, LONGEST - model.order
    some, none = levels[0], np.empty(0, dtype=np.float32)
    words = (*(level.words for level in levels), *([some.words[:0]] * rest))
    probs = (*(level.probs for level in levels), *([none] * rest))
    backoffs = (*(none if v.backoffs is None else v.backoffs for v in levels), *([none] * rest))
    offsets = np.empty(0, dtype=np.uint32 if some.children is None else some.children.dtype)
    children = (*(offsets if v.children is None else v.children for v in levels), *([offsets] * rest))
    same = {array.dtype for array in children}
    if len(same) > 1:  # some level has more than 2^32 extensions
        children = tuple(array.astype(np.uint64) for array in children)
    done: bool = _score_range(ids, low, high, model.order, words, probs, backoffs, children, logp)
    return done

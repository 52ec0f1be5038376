"""Compiled scoring of one short sentence: only the words are passed, and no arrays are made.

A call with every array of a trie would cost more than scoring; so the kernel gets one small table of their
addresses and lengths. The plain equivalent is `walk.TrieWalk`; a test compares them.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic

from nextword.core.contracts import START, UNKNOWN
from nextword.formats.arpa.lines import ZERO_LOG10
from nextword.ngram.arrays import Trie

Array = np.ndarray[Any, np.dtype[Any]]
_WORDS, _PROBS, _BACKOFFS, _CHILDREN, _SIZE, _WIDE = range(6)  # columns of the table
_START, _UNKNOWN, _ZERO_LOG10 = START, UNKNOWN, ZERO_LOG10


def layout(trie: Trie) -> Array:
    """Return a row for each order: addresses of its arrays, its size, and whether its offsets have 64 bits.

    The trie must live as long as the table.
    """
    table = np.zeros((trie.order, 6), dtype=np.int64)
    for row, level in zip(table, trie.levels, strict=True):
        row[_WORDS], row[_PROBS], row[_SIZE] = level.words.ctypes.data, level.probs.ctypes.data, len(level)
        if level.backoffs is not None and level.children is not None:
            row[_BACKOFFS], row[_CHILDREN] = level.backoffs.ctypes.data, level.children.ctypes.data
            row[_WIDE] = level.children.itemsize == 8
    return table


@intrinsic
def _pointer(context, address):
    """Return an address as a pointer."""
    signature = types.voidptr(address)

    def generate(context, builder, signature, args):
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return signature, generate


@njit(cache=True, nogil=True, inline="always")
def _child_range(table, n, node):
    """Return where the extensions of a node of level n (from 0) start and stop."""
    if table[n, _WIDE]:
        wide = carray(_pointer(table[n, _CHILDREN]), (table[n, _SIZE] + 1,), np.uint64)
        return np.int64(wide[node]), np.int64(wide[node + 1])
    short = carray(_pointer(table[n, _CHILDREN]), (table[n, _SIZE] + 1,), np.uint32)
    return np.int64(short[node]), np.int64(short[node + 1])


@njit(cache=True, nogil=True, inline="always")
def _number(table, n, column, node):
    """Return a probability or weight of a node."""
    return np.float64(carray(_pointer(table[n, column]), (table[n, _SIZE],), np.float32)[node])


@njit(cache=True, nogil=True)
def score(table, ids, begin, unknown, start):
    """Compute log10 p of the words; NaN if an offset points outside its array.

    ``unknown`` and ``start``: log10 p to take for these two where their probability is zero.
    """
    order = table.shape[0]
    nodes = np.empty(order + 1, np.int64)  # of the contexts, from the shortest
    held = 0
    if begin and order > 1:
        nodes[0], held = _START, 1
    total, product = 0.0, 1.0
    for word in ids:
        if not 0 <= word < table[0, _SIZE]:
            return np.nan
        p, found, last = _number(table, 0, _PROBS, word), 1, np.int64(word)
        for n in range(held):  # ever longer n-grams, as long as they exist
            low, high = _child_range(table, n, nodes[n])
            if not 0 <= low <= high <= table[n + 1, _SIZE]:
                return np.nan
            words = carray(_pointer(table[n + 1, _WORDS]), (table[n + 1, _SIZE],), np.int32)
            stop = high
            while low < high:
                middle = (low + high) >> 1
                if words[middle] < word:
                    low = middle + 1
                else:
                    high = middle
            if low == stop or words[low] != word:
                break
            nodes[n], last = last, low
            p = _number(table, n + 1, _PROBS, low)
            found += 1
        for n in range(found - 1, held):  # the weights of the contexts left over
            weight = _number(table, n, _BACKOFFS, nodes[n])
            if weight > 0.0:
                product *= weight
            else:
                total += _ZERO_LOG10
        if p > 0.0:
            product *= p
        else:
            total += unknown if word == _UNKNOWN else (start if word == _START else _ZERO_LOG10)
        nodes[found - 1] = last
        held = min(found, order - 1)
        if product < 1e-200 or product > 1e200:
            total += math.log10(product)
            product = 1.0
    return total + math.log10(product)

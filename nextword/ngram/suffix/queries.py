"""Compiled walks along a stream of tokens: longest matches, counts and probabilities.

A stream is searched block by block and length by length: within one length no token waits for another.
Only matches longer than the levels are followed token by token. The plain version is `suffix.walk`; a test
compares them. Every place read from a file is checked against the text before use.
"""

# ruff: noqa: ANN001, ANN201, ANN202 - numba finds the types of its kernels
from __future__ import annotations

import numpy as np

from nextword.core.contracts import END, START
from nextword.ngram.suffix.array import STRIDE
from nextword.ngram.suffix.search import _NEAR, BLOCK, extend_block
from nextword.system.compiled import compiled

_END, _START, _STRIDE = END, START, STRIDE
_MOST = 255


@compiled(nogil=True)
def _last(ids, order, shared, start, end, depth, word):  # type: ignore[no-untyped-def]
    """Return where the suffixes with `word` after `depth` tokens end; `start` is the first of them."""
    r = start + 1
    if depth < _MOST:
        while r < end and r - start < _NEAR and shared[r] > depth:
            r += 1
        if r == end or shared[r] <= depth:
            return r
    return _bound(ids, order, r, end, depth, word + 1)


@compiled(nogil=True)
def _bound(ids, order, low, high, depth, word):  # type: ignore[no-untyped-def]
    """Return the first suffix of an interval whose token after `depth` tokens is not smaller."""
    top = len(ids) - 1
    while low < high:
        middle = (low + high) >> 1
        if ids[min(np.int64(order[middle]) + depth, top)] < word:
            low = middle + 1
        else:
            high = middle
    return low


@compiled(nogil=True)
def _compare(ids, at, first, last, word):  # type: ignore[no-untyped-def]
    """Compare the text at a place with the tokens first … last-1 of the text and then `word`: -1, 0, 1."""
    n = len(ids)
    for j in range(last - first + 1):
        if at + j >= n:
            return -1
        wanted = ids[first + j] if first + j < last else word
        found = ids[at + j]
        if found != wanted:
            return -1 if found < wanted else 1
    return 0


@compiled(nogil=True)
def _locate(ids, order, starts, first, last, word):  # type: ignore[no-untyped-def]
    """Return the interval of the tokens first … last-1 of the text, followed by `word`."""
    low, high = starts[ids[first]], starts[ids[first] + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if _compare(ids, np.int64(order[middle]), first, last, word) < 0:
            low = middle + 1
        else:
            high = middle
    start, high = low, end
    while low < high:
        middle = (low + high) >> 1
        if _compare(ids, np.int64(order[middle]), first, last, word) <= 0:
            low = middle + 1
        else:
            high = middle
    return start, low


@compiled(nogil=True)
def _count_equal(shared, first, last, depth):  # type: ignore[no-untyped-def]
    count = 0
    wanted = np.uint8(depth)
    for r in range(first, last):
        count += shared[r] == wanted
    return count


@compiled(nogil=True)
def _kinds(ids, order, shared, marks, low, high, depth):  # type: ignore[no-untyped-def]
    """Return how many distinct tokens follow the phrase of `depth` tokens with interval low … high-1."""
    if depth >= _MOST:
        count, r = 0, low
        while r < high:
            at = min(np.int64(order[r]) + depth, len(ids) - 1)
            r = max(r + 1, _bound(ids, order, r, high, depth, ids[at] + 1))
            count += 1
        return count
    if depth > len(marks) or high - low <= 2 * _STRIDE:
        return 1 + _count_equal(shared, low + 1, high, depth)
    a, b = (low + 1) // _STRIDE, high // _STRIDE
    found = np.int64(marks[depth - 1, b]) - np.int64(marks[depth - 1, a])
    found += _count_equal(shared, b * _STRIDE, high, depth)
    found -= _count_equal(shared, a * _STRIDE, low + 1, depth)
    return min(max(1 + found, 1), high - low)


@compiled(nogil=True)
def _longest(ids, order, shared, starts, low, high, length, levels, word):  # type: ignore[no-untyped-def]
    """Return the longest match after `word`, given the longest before it (longer than the levels) and that
    ``levels`` tokens of it followed by `word` are in the text: its interval, its length, and how many
    tokens of the text followed the whole match with `word`; a length of -1 means that the file is damaged.
    """
    n = len(ids)
    top = np.int64(order[low])
    if top + length >= n:
        return low, high, -1, 0
    start = _bound(ids, order, low, high, length, word)
    if start < high and ids[min(np.int64(order[start]) + length, n - 1)] == word:
        end = _last(ids, order, shared, start, high, length, word)
        return start, end, length + 1, end - start
    good, bad = levels, length
    start, end = _locate_kept(ids, order, starts, top, length, good, word)
    while bad - good > 1:
        middle = (good + bad) >> 1
        a, b = _locate_kept(ids, order, starts, top, length, middle, word)
        if a < b:
            good, start, end = middle, a, b
        else:
            bad = middle
    return start, end, good + 1 if start < end else -1, 0


@compiled(nogil=True)
def _locate_kept(ids, order, starts, at, length, kept, word):  # type: ignore[no-untyped-def]
    """Return the interval of the last `kept` tokens of the match of `length` tokens at a place and `word`."""
    first = at + length - kept
    if ids[first] < 0 or ids[first] >= len(starts) - 1:
        return np.int64(0), np.int64(0)
    return _locate(ids, order, starts, first, at + length, word)


@compiled(nogil=True)
def settle(  # type: ignore[no-untyped-def]
    ids,
    order,
    shared,
    starts,
    marks,
    words,
    first,
    count,
    low,
    high,
    long,
    unigrams,
    weights,
    p,
    lengths,
    totals,
    hits,
):
    """Walk over a block with known intervals: longest matches, counts, probabilities; False if damaged.

    ``low[k, i]``, ``high[k, i]``: the interval of the last k tokens after i tokens, k up to one more than
    the levels. ``long``: low, high and length of the longest match before the block, and after it on return.
    ``weights``: Witten-Bell's share of a new kind, 1 for the counts alone, then the discount of each level.
    """
    levels = len(marks)
    kind, alone = weights[0], weights[1] > 0
    everything = len(ids) - (starts[_START + 1] - starts[_START])
    for i in range(count):
        word = words[first + i]
        length = long[2]
        a, b = long[0], long[1]
        if word == _START or word < 0:
            p[first + i] = 1.0
            lengths[first + i] = totals[first + i] = hits[first + i] = 0
            long[0], long[1], long[2] = low[1, i + 1], high[1, i + 1], 1 if word == _START else 0
            if high[1, i + 1] <= low[1, i + 1]:
                long[2] = 0
            continue
        longer = high[levels + 1, i + 1] > low[levels + 1, i + 1]
        together = np.int64(0)
        if length <= levels:
            together = high[length + 1, i + 1] - low[length + 1, i + 1]
        if longer and length > levels:
            long[0], long[1], long[2], together = _longest(
                ids, order, shared, starts, a, b, length, levels, word
            )
            if long[2] < 0:
                return False
        else:
            k = levels + 1
            while k > 0 and high[k, i + 1] <= low[k, i + 1]:
                k -= 1
            long[0], long[1], long[2] = low[k, i + 1], high[k, i + 1], k
        if word == _END:
            long[2] = 0
        lengths[first + i] = length
        totals[first + i] = b - a if length > 0 else everything
        hits[first + i] = together
        if alone:
            p[first + i] = hits[first + i] / max(totals[first + i], 1)
            continue
        chance = unigrams[word]
        for k in range(1, min(length, levels) + 1):
            c, d = low[k, i], high[k, i]
            n = high[k + 1, i + 1] - low[k + 1, i + 1]
            if c >= d:  # a longer match without the shorter ones
                return False
            share, discount = _kinds(ids, order, shared, marks, c, d, k), weights[1 + k]
            chance = (n - discount * (n > 0) + (kind + discount) * share * chance) / (d - c + kind * share)
        if length > levels:
            share, discount = _kinds(ids, order, shared, marks, a, b, length), weights[2 + levels]
            taken = discount * (together > 0)
            chance = (together - taken + (kind + discount) * share * chance) / (b - a + kind * share)
        p[first + i] = chance
    return True


@compiled(nogil=True)
def walk(  # type: ignore[no-untyped-def]
    ids,
    order,
    shared,
    starts,
    marks,
    seconds,
    words,
    first,
    last,
    low,
    high,
    long,
    unigrams,
    weights,
    p,
    lengths,
    totals,
    hits,
):
    """Search the tokens first … last-1 of a stream; ``low``, ``high`` and ``long`` carry the state."""
    levels = len(marks)
    work = np.empty((9, BLOCK), np.int64)
    for block in range(first, last, BLOCK):
        count = min(BLOCK, last - block)
        for i in range(count):
            word = words[block + i]
            low[1, i + 1] = starts[word] if word >= 0 else 0
            high[1, i + 1] = starts[word + 1] if word >= 0 else 0
        for k in range(1, levels + 1):
            if not extend_block(
                ids,
                order,
                shared,
                seconds,
                k,
                words,
                block,
                count,
                low[k],
                high[k],
                low[k + 1],
                high[k + 1],
                work,
            ):
                return False
        if not settle(
            ids, order, shared, starts, marks, words, block, count, low, high, long, unigrams, weights,
            p, lengths, totals, hits,
        ):  # fmt: skip
            return False
        ended = words[block + count - 1] == _END
        for k in range(levels + 2):
            low[k, 0] = 0 if ended else low[k, count]
            high[k, 0] = 0 if ended else high[k, count]
    return True

"""Compiled searches in a suffix array: many intervals are narrowed at once, so that cache misses overlap.

The plain version is `suffix.array.SuffixArray.extend`; a test compares them. Every place read from a file is
checked against the text before use.
"""

# ruff: noqa: ANN001, ANN201, ANN202 - numba finds the types of its kernels
from __future__ import annotations

import numpy as np

from nextword.core.contracts import END, START
from nextword.ngram.suffix.array import EVERY
from nextword.system.compiled import compiled

_END, _START, _EVERY = END, START, EVERY
_MOST = 255
BLOCK = 2048  # searches in parallel
_ROUNDS = 3  # bisection steps before finished searches are removed
_NEAR = 32  # the end of an interval is searched linearly this far


@compiled(nogil=True)
def _halve(ids, order, depth, going, base, size, wanted, place, found):  # type: ignore[no-untyped-def]
    """Set found[place] to the first suffix from `base` on, of `size`, whose token at `depth` is not smaller.

    All searches proceed together, so that their cache misses overlap; False if the file is damaged.
    """
    top = len(ids) - 1
    bad = False
    while going > 0:
        for _ in range(_ROUNDS):
            for q in range(going):
                half = size[q] >> 1
                middle = base[q] + half
                at = np.int64(order[min(middle, top)]) + depth
                bad |= (at > top) & (size[q] > 0)
                smaller = (ids[min(at, top)] < wanted[q]) & (size[q] > 0)
                base[q] = middle + 1 if smaller else base[q]
                size[q] = size[q] - half - 1 if smaller else half
        kept = 0
        for q in range(going):  # remove finished searches
            found[place[q]] = base[q]  # provisional while a search continues
            base[kept], size[kept], wanted[kept], place[kept] = base[q], size[q], wanted[q], place[q]
            kept += size[q] > 0
        going = kept
    return not bad


@compiled(nogil=True)
def _narrow(seconds, count, base, size, wanted):  # type: ignore[no-untyped-def]
    """Narrow searches for a second token to a few suffixes, by the stored tokens, which are contiguous."""
    for q in range(count):
        a = (base[q] + _EVERY - 1) // _EVERY
        b = (base[q] + size[q] + _EVERY - 1) // _EVERY
        low, high = a, b
        while low < high:
            middle = (low + high) >> 1
            if seconds[middle] < wanted[q]:
                low = middle + 1
            else:
                high = middle
        end = low * _EVERY if low < b else base[q] + size[q]
        base[q] = (low - 1) * _EVERY + 1 if low > a else base[q]
        size[q] = end - base[q]


@compiled(nogil=True)
def _extend_rows(ids, order, shared, seconds, depth, count, low, high, words, work):  # type: ignore[no-untyped-def]
    """Extend nonempty intervals of `depth` tokens by one token, in place; False if damaged."""
    base, size, wanted, place, found = work[0], work[1], work[2], work[3], work[4]
    top = len(ids) - 1
    for q in range(count):
        base[q], size[q], wanted[q], place[q] = low[q], high[q] - low[q], words[q], q
    if depth == 1:
        _narrow(seconds, count, base, size, wanted)
    if not _halve(ids, order, depth, count, base, size, wanted, place, found):
        return False
    for q in range(count):  # is it the word itself?
        base[q] = ids[min(np.int64(order[min(found[q], top)]) + depth, top)]
    going = 0
    for q in range(count):
        start, end, word = found[q], high[q], words[q]
        if start == end or base[q] != word:
            low[q] = high[q] = 0
            continue
        r = start + 1
        if depth < _MOST:
            while r < end and r - start < _NEAR and shared[r] > depth:
                r += 1
        low[q], high[q] = start, r
        if r < end and (depth >= _MOST or shared[r] > depth):  # the end is farther away
            base[going], size[going], wanted[going], place[going] = r, end - r, word + 1, q
            going += 1
    if depth == 1:
        _narrow(seconds, going, base, size, wanted)
    return _halve(ids, order, depth, going, base, size, wanted, place, high)


@compiled(nogil=True)
def extend_block(  # type: ignore[no-untyped-def]
    ids, order, shared, seconds, depth, words, first, count, low, high, new_low, new_high, work
):
    """Extend the intervals of `depth` tokens before each of `count` tokens by that token; False if damaged.

    Column i is after i tokens of the block, column 0 before it. A missing phrase is an empty interval.
    """
    a, b, wanted, asked = work[5], work[6], work[7], work[8]
    left = 0
    for i in range(count):
        new_low[i + 1] = 0
        new_high[i + 1] = 0
        word = words[first + i]
        after_end = i > 0 and words[first + i - 1] == _END
        a[left], b[left], wanted[left], asked[left] = low[i], high[i], word, i + 1
        left += (high[i] > low[i]) & (word >= 0) & (word != _START) & (not after_end)
    if not _extend_rows(ids, order, shared, seconds, depth, left, a, b, wanted, work):
        return False
    for q in range(left):
        new_low[asked[q]], new_high[asked[q]] = a[q], b[q]
    return True


@compiled(nogil=True)
def match_rows(  # type: ignore[no-untyped-def]
    ids, order, shared, starts, seconds, flat, ends, sizes, words, first, last, most, lengths, totals, hits
):
    """Find the longest match (up to `most` tokens) of the contexts first … last-1, and the word's count.

    Context q is the `sizes[q]` tokens of `flat` before `ends[q]`. All contexts of a block are tried with
    their last token, then those that matched with their last two, and so on. False if damaged.
    """
    everything = len(ids) - (starts[_START + 1] - starts[_START])
    work = np.empty((10, BLOCK), np.int64)
    low, high, wanted, asked, alive = work[5], work[6], work[7], work[8], work[9]
    best = np.empty((2, BLOCK), np.int64)
    for block in range(first, last, BLOCK):
        count = min(BLOCK, last - block)
        for q in range(count):
            alive[q] = q
            lengths[block + q] = 0
            word = words[block + q]
            totals[block + q] = everything
            hits[block + q] = 0 if word == _START else starts[word + 1] - starts[word]
        left = count
        for length in range(1, most + 1):
            left = _one_longer(
                ids,
                order,
                shared,
                starts,
                seconds,
                flat,
                ends,
                sizes,
                block,
                length,
                left,
                best,
                lengths,
                work,
            )
            if left < 0:
                return False
        for length in range(1, most + 1):
            left = 0
            for q in range(count):
                if lengths[block + q] == length:
                    low[left], high[left] = best[0, q], best[1, q]
                    wanted[left], asked[left] = words[block + q], q
                    left += 1
            for k in range(left):
                totals[block + asked[k]] = high[k] - low[k]
            if not _extend_rows(ids, order, shared, seconds, length, left, low, high, wanted, work):
                return False
            for k in range(left):
                hits[block + asked[k]] = high[k] - low[k] if wanted[k] != _START else 0
    return True


@compiled(nogil=True)
def _one_longer(  # type: ignore[no-untyped-def]
    ids, order, shared, starts, seconds, flat, ends, sizes, block, length, left, best, lengths, work
):
    """Try the active contexts with their last `length` tokens; return how many matched (-1: damaged)."""
    low, high, wanted, asked, alive = work[5], work[6], work[7], work[8], work[9]
    going = 0
    for k in range(left):
        q = alive[k]
        if sizes[block + q] >= length:
            word = flat[ends[block + q] - length]
            low[going], high[going], asked[going] = starts[word], starts[word + 1], q
            going += (word != _END) & (starts[word] < starts[word + 1])
    for depth in range(1, length):
        for k in range(going):
            wanted[k] = flat[ends[block + asked[k]] - length + depth]
        if not _extend_rows(ids, order, shared, seconds, depth, going, low, high, wanted, work):
            return -1
        kept = 0
        for k in range(going):
            low[kept], high[kept], asked[kept] = low[k], high[k], asked[k]
            kept += low[k] < high[k]
        going = kept
    for k in range(going):
        q = asked[k]
        alive[k] = q
        best[0, q], best[1, q], lengths[block + q] = low[k], high[k], length
    return going

"""Compiled counting: one sort of the text's positions gives the n-grams of every order at once.

Positions are put into buckets by their first token; each bucket is sorted by the tokens that follow.
Then n-grams of every order are runs of neighbours, and one pass writes the trie, the counts and
the number of distinct left neighbours. The plain version is `counts.count`; a test compares them.

Every kernel works on a range of tokens and releases the GIL, so threads share the work.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import END, START
from nextword.system.compiled import compiled

Array = np.ndarray[Any, np.dtype[Any]]
_END, _START = END, START
_RADIX_FROM = 300  # smaller buckets are sorted by comparison
_DIGIT = 11  # bits of a key per radix pass
_NEVER = 2**32 - 1
_BLOCK = 256  # rows fetched before they are processed


def is_cached() -> bool:
    """Return whether the kernels were already compiled on this machine (numba caches them on disk)."""
    from pathlib import Path

    folder = Path(histogram.stats.cache_path or ".")
    return any(folder.glob("kernels.histogram-*.nbi"))


@compiled(nogil=True)
def histogram(ids, counts):  # type: ignore[no-untyped-def]
    """Count the occurrences of each token."""
    for i in range(len(ids)):
        counts[ids[i]] += 1


@compiled(nogil=True)
def scatter(ids, low, high, cursor, positions):  # type: ignore[no-untyped-def]
    """Write the positions of the tokens low … high-1, bucket by bucket, in text order."""
    for i in range(len(ids)):
        word = ids[i]
        if low <= word < high:
            positions[cursor[word]] = i
            cursor[word] += 1


@compiled(nogil=True)
def _insertion(keys, places, first, last):  # type: ignore[no-untyped-def]
    for i in range(first + 1, last):
        key, place = keys[i], places[i]
        j = i
        while j > first and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            places[j] = places[j - 1]
            j -= 1
        keys[j] = key
        places[j] = place


@compiled(nogil=True)
def _quick(keys, places, first, last, stack):  # type: ignore[no-untyped-def]
    """Sort by comparison: pending ranges on an explicit stack, small ones by insertion."""
    top = 0
    stack[0, 0], stack[0, 1] = first, last
    top = 1
    while top > 0:
        top -= 1
        a, b = stack[top, 0], stack[top, 1]
        while b - a > 24:
            middle = (a + b) >> 1
            x, y, z = keys[a], keys[middle], keys[b - 1]
            pivot = max(min(x, y), min(max(x, y), z))
            i, j = a, b - 1
            while i <= j:
                while keys[i] < pivot:
                    i += 1
                while keys[j] > pivot:
                    j -= 1
                if i <= j:
                    keys[i], keys[j] = keys[j], keys[i]
                    places[i], places[j] = places[j], places[i]
                    i += 1
                    j -= 1
            # Continue with the smaller part; the larger waits, so the stack stays small.
            if j + 1 - a < b - i:
                stack[top, 0], stack[top, 1] = i, b
                top += 1
                b = j + 1
            else:
                stack[top, 0], stack[top, 1] = a, j + 1
                top += 1
                a = i
        _insertion(keys, places, a, b)


@compiled(nogil=True)
def _radix(keys, places, m, bits, keys2, places2, buckets):  # type: ignore[no-untyped-def]
    """Sort the first m keys by digits of 11 bits, lowest first; the result is in keys, places."""
    mask = np.uint64((1 << _DIGIT) - 1)
    flipped = False
    shift = 0
    while shift < bits:
        s = np.uint64(shift)
        buckets[:] = 0
        if flipped:
            source, source_p, target, target_p = keys2, places2, keys, places
        else:
            source, source_p, target, target_p = keys, places, keys2, places2
        for i in range(m):
            buckets[(source[i] >> s) & mask] += 1
        if buckets[(source[0] >> s) & mask] < m:  # otherwise all have the same digit
            total = 0
            for d in range(len(buckets)):
                count = buckets[d]
                buckets[d] = total
                total += count
            for i in range(m):
                d = (source[i] >> s) & mask
                at = buckets[d]
                target[at] = source[i]
                target_p[at] = source_p[i]
                buckets[d] = at + 1
            flipped = not flipped
        shift += _DIGIT
    if flipped:
        for i in range(m):
            keys[i] = keys2[i]
            places[i] = places2[i]


@compiled(nogil=True)
def _sort_run(  # type: ignore[no-untyped-def]
    ids,
    order,
    positions,
    shape,
    first,
    last,
    depth,
    width,
    bits,
    keys,
    keys2,
    places,
    places2,
    stack,
    buckets,
    windows,
):
    """Sort positions first … last-1, equal in `depth` tokens, by the next `width` tokens.

    Writes into `shape` how many tokens each shares with the one before it (low half of the byte)
    and its length, if END cuts it off (high half). A key is the tokens and then the length.
    """
    m = last - first
    shift, four = np.uint64(bits), np.uint64(4)
    wanted = order - depth
    end = len(ids) - 1
    for block in range(0, m, _BLOCK):
        rows = min(_BLOCK, m - block)
        for i in range(rows):  # fetch first, without branches, so that cache misses overlap
            at = np.int64(positions[first + block + i])
            places[block + i] = at
            for j in range(wanted):
                windows[i, j] = ids[min(at + depth + j, end)]
        for i in range(rows):
            key = np.uint64(0)
            length = order
            for j in range(wanted):
                word = windows[i, j]
                if j < width:
                    key = (key << shift) | np.uint64(word)
                if word == _END:
                    length = depth + j + 1
                    for _ in range(j + 1, width):
                        key = key << shift
                    break
            keys[block + i] = (key << four) | np.uint64(length)
    if m >= _RADIX_FROM:
        _radix(keys, places, m, 4 + bits * width, keys2, places2, buckets)
    else:
        _quick(keys, places, 0, m, stack)
    for i in range(m):
        positions[first + i] = places[i]
        length = np.int64(keys[i] & np.uint64(15))
        shared = np.int64(shape[first] & 15)
        if i > 0:
            shared = depth + width
            different = (keys[i] ^ keys[i - 1]) >> four
            while different != 0:
                different >>= shift
                shared -= 1
            shared = min(shared, length)
        shape[first + i] = shared | (length << 4)


@compiled(nogil=True)
def sort_words(ids, order, bits, low, high, starts, positions, shape, sizes):  # type: ignore[no-untyped-def]
    """Sort the buckets of the tokens low … high-1 by up to `order` tokens; count the nodes per order."""
    largest = 1
    for word in range(low, high):
        largest = max(largest, starts[word + 1] - starts[word])
    keys, places = np.empty(largest, np.uint64), np.empty(largest, np.uint32)
    spare = largest if largest >= _RADIX_FROM else 1
    keys2, places2 = np.empty(spare, np.uint64), np.empty(spare, np.uint32)
    stack, buckets = np.empty((64, 2), np.int64), np.empty(1 << _DIGIT, np.int64)
    windows = np.empty((_BLOCK, order), np.int32)
    most = max(1, 60 // bits)
    for word in range(low, high):
        a, b = starts[word], starts[word + 1]
        if a == b:
            continue
        shape[a] = 0
        if word == _END or order == 1:
            for r in range(a, b):
                shape[r] = (1 if r > a else 0) | (1 << 4)
        else:
            width = min(most, order - 1)
            _sort_run(
                ids,
                order,
                positions,
                shape,
                a,
                b,
                1,
                width,
                bits,
                keys,
                keys2,
                places,
                places2,
                stack,
                buckets,
                windows,
            )
            depth = 1 + width
            while depth < order:
                width = min(most, order - depth)
                r = a
                while r < b:  # runs of several that are equal so far and continue
                    e = r + 1
                    while e < b and (shape[e] & 15) >= depth and (shape[e] >> 4) > depth:
                        e += 1
                    if e - r > 1:
                        _sort_run(
                            ids,
                            order,
                            positions,
                            shape,
                            r,
                            e,
                            depth,
                            width,
                            bits,
                            keys,
                            keys2,
                            places,
                            places2,
                            stack,
                            buckets,
                            windows,
                        )
                    r = e
                depth += width
        for r in range(a, b):
            for n in range((shape[r] & 15) + 1, (shape[r] >> 4) + 1):
                sizes[n] += 1


@compiled(nogil=True)
def fill(  # type: ignore[no-untyped-def]
    ids,
    order,
    low,
    high,
    starts,
    positions,
    shape,
    begins,
    at,
    raw_from,
    left,
    words,
    counts,
    adjusted,
    children,
):
    """Write the trie of the tokens low … high-1.

    The levels are concatenated in flat arrays: level n starts at ``begins[n]`` (in `children` one
    place later for each level before it). ``at[n]`` is the first node to write in level n.
    Counts are kept for orders from `raw_from` on, distinct left neighbours (`left`) below the highest.
    """
    seen = np.full((len(starts) - 1) * (order - 1) if left else 1, _NEVER, np.uint32)
    node = np.empty(order + 2, np.int64)
    since = np.full(order + 2, -1, np.int64)
    windows = np.empty((_BLOCK, order + 1), np.int32)  # the token before, and the n-gram
    for n in range(order + 1):
        node[n] = at[n] - 1
    for word in range(low, high):
        a, b = starts[word], starts[word + 1]
        node[1] = word
        if order > 1:
            children[word] = node[2] + 1
        leads = word == _START
        for block in range(a, b, _BLOCK):
            rows = min(_BLOCK, b - block)
            _fetch(ids, positions, block, rows, order, windows)
            for i in range(rows):
                r = block + i
                shared, length = np.int64(shape[r] & 15), np.int64(shape[r] >> 4)
                if shared < length:
                    for n in range(shared + 1, order + 1):  # close what ends here
                        if since[n] >= 0:
                            _close(
                                n,
                                node[n],
                                r - since[n],
                                leads,
                                order,
                                begins,
                                raw_from,
                                left,
                                counts,
                                adjusted,
                            )
                            since[n] = -1
                    for n in range(shared + 1, length + 1):
                        since[n] = r
                        if n > 1:
                            node[n] += 1
                            words[begins[n] + node[n]] = windows[i, n]
                            if n < order:
                                children[begins[n] + n - 1 + node[n]] = node[n + 1] + 1
                                if left:
                                    adjusted[begins[n] + node[n]] = 0
                if left and not leads:
                    before = np.int64(windows[i, 0]) * (order - 1) - 1
                    n = min(length, order - 1)
                    while n > 0 and seen[before + n] != node[n]:
                        seen[before + n] = node[n]
                        adjusted[begins[n] + node[n]] += 1
                        n -= 1
        for n in range(1, order + 1):
            if since[n] >= 0:
                _close(n, node[n], b - since[n], leads, order, begins, raw_from, left, counts, adjusted)
                since[n] = -1


@compiled(nogil=True)
def _fetch(ids, positions, block, rows, order, windows):  # type: ignore[no-untyped-def]
    """Read the tokens around each position without a branch, so that cache misses overlap."""
    last = len(ids) - 1
    for i in range(rows):
        p = np.int64(positions[block + i])
        windows[i, 0] = ids[max(p - 1, 0)]
        for n in range(order):
            windows[i, n + 1] = ids[min(p + n, last)]


@compiled(nogil=True, inline="always")
def _close(n, node, count, leads, order, begins, raw_from, left, counts, adjusted):  # type: ignore[no-untyped-def]
    if n >= raw_from:
        counts[begins[n] - begins[raw_from] + node] = count
    if left and leads and n < order:
        adjusted[begins[n] + node] = count

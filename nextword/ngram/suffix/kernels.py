"""Compiled construction of a suffix array over tokens: buckets, packed keys, then prefix doubling.

Positions are put into buckets by their first token and each bucket is sorted by keys of several tokens at
a time, as in `kernels`; what is still equal after many tokens (copied documents) is sorted by the ranks of
the suffixes further on (Larsson and Sadakane 1999), so that copies cannot make the work quadratic.
A suffix ends at END; suffixes that are equal up to there are in text order.
The plain version is `suffix.array.sort_plain`; a test compares them.
"""

from __future__ import annotations

import numpy as np

from nextword.core.contracts import END
from nextword.ngram.fast.kernels import _BLOCK, _DIGIT, _RADIX_FROM, _quick, _radix
from nextword.system.compiled import compiled

_END = END
_OPEN = 255  # in `shared` while sorting: equal to the suffix before it so far, and both continue
_MOST = 255  # in the result: this many tokens in common, or more
DEEP = 96  # tokens compared before ranks take over
STRIDE = 256  # suffixes per mark


@compiled(nogil=True)
def _make_keys(  # type: ignore[no-untyped-def]
    ids, positions, first, m, depth, width, bits, keys, places, windows
):
    """Make keys of the `width` tokens that follow the first `depth`; after END there is nothing."""
    shift = np.uint64(bits)
    end = len(ids) - 1
    for block in range(0, m, _BLOCK):
        rows = min(_BLOCK, m - block)
        for i in range(rows):  # fetch first, without branches, so that cache misses overlap
            at = np.int64(positions[first + block + i])
            places[block + i] = at
            for j in range(width):
                windows[i, j] = ids[min(at + depth + j, end)]
        for i in range(rows):
            key = np.uint64(0)
            ended = False
            for j in range(width):
                key = key << shift
                if not ended:
                    key |= np.uint64(windows[i, j])
                    ended = windows[i, j] == _END
            keys[block + i] = key


@compiled(nogil=True)
def _words_to_end(key, width, bits):  # type: ignore[no-untyped-def]
    """Return the number of tokens of a key up to and including END; 0 if it has none."""
    mask = np.uint64((1 << bits) - 1)
    for j in range(width):
        if (key >> np.uint64(bits * (width - 1 - j))) & mask == np.uint64(_END):
            return j + 1
    return 0


@compiled(nogil=True)
def _sort_keys(  # type: ignore[no-untyped-def]
    shared, first, m, depth, width, bits, keys, places, keys2, places2, stack, buckets
):
    """Sort m suffixes, equal in `depth` tokens, by key; set `shared`; return how many stay open."""
    if m >= _RADIX_FROM:
        _radix(keys, places, m, bits * width, keys2, places2, buckets)
    else:
        _quick(keys, places, 0, m, stack)
    shift = np.uint64(bits)
    opened = 0
    i = 1
    while i < m:
        if keys[i] != keys[i - 1]:
            different = keys[i] ^ keys[i - 1]
            common = depth + width
            while different != 0:
                different >>= shift
                common -= 1
            shared[first + i] = common
            i += 1
            continue
        a, key = i - 1, keys[i]
        length = _words_to_end(key, width, bits)
        mark = _OPEN if length == 0 else depth + length
        while i < m and keys[i] == key:
            shared[first + i] = mark
            i += 1
        if length == 0:
            opened += i - a - 1
        else:
            _by_position(keys, places, a, i, stack)
    return opened


@compiled(nogil=True)
def _by_position(keys, places, a, b, stack):  # type: ignore[no-untyped-def]
    """Sort equal suffixes by text order; their keys (all the same, and no longer needed) are overwritten."""
    key = keys[a]
    for i in range(a, b):
        keys[i] = places[i]
    _quick(keys, places, a, b, stack)
    keys[b - 1] = key  # the next suffix is compared with it


@compiled(nogil=True)
def reach(bits):  # type: ignore[no-untyped-def]
    """Return how many tokens are compared before ranks take over: the first, and then whole keys."""
    width = 64 // bits
    return 1 + width * ((DEEP - 1 + width - 1) // width)


@compiled(nogil=True)
def _pair(ids, positions, shared, r, depth, deep):  # type: ignore[no-untyped-def]
    """Sort two suffixes, equal in `depth` tokens, token by token; return 1 if equal in `deep` tokens."""
    a, b = np.int64(positions[r]), np.int64(positions[r + 1])
    while depth < deep and ids[a + depth] == ids[b + depth]:
        depth += 1
        if ids[a + depth - 1] == _END:
            if a > b:
                positions[r], positions[r + 1] = b, a
            shared[r + 1] = depth
            return 0
    if depth == deep:
        shared[r + 1] = _OPEN
        return 1
    if ids[a + depth] > ids[b + depth]:
        positions[r], positions[r + 1] = b, a
    shared[r + 1] = depth
    return 0


@compiled(nogil=True)
def scatter(ids, bits, low, high, starts, positions, keys):  # type: ignore[no-untyped-def]
    """Write the positions of the tokens low … high-1 by bucket, and the key of the tokens after each.

    The text is read backwards: the key of a place is that of the next one, shifted by a token.
    """
    width = 64 // bits
    shift, top = np.uint64(bits), np.uint64(bits * (width - 1))
    spare = np.uint64(64 - bits * width)
    ends = starts[low + 1 : high + 1].copy()
    key = np.uint64(0)
    for i in range(len(ids) - 1, -1, -1):
        word = ids[i]
        if low <= word < high:
            at = ends[word - low] - 1
            ends[word - low] = at
            positions[at] = i
            keys[at - starts[low]] = key
        rest = np.uint64(0) if word == _END else (key << spare) >> (shift + spare)
        key = (np.uint64(word) << top) | rest


@compiled(nogil=True)
def sort_buckets(ids, bits, low, high, starts, positions, shared, keys):  # type: ignore[no-untyped-def]
    """Sort the buckets of the tokens low … high-1 by up to `DEEP` tokens; return how many stay open.

    `keys` are those of `scatter`, and are overwritten.
    """
    largest = 1
    for word in range(low, high):
        if word != _END:
            largest = max(largest, starts[word + 1] - starts[word])
    places = np.empty(largest, np.uint32)
    spare = largest if largest >= _RADIX_FROM else 1
    keys2, places2 = np.empty(spare, np.uint64), np.empty(spare, np.uint32)
    stack, buckets = np.empty((64, 2), np.int64), np.empty(1 << _DIGIT, np.int64)
    width = 64 // bits
    windows = np.empty((_BLOCK, width), np.int32)
    todo = np.empty((DEEP + 2, 3), np.int64)  # ranges whose open groups must be sorted, from which token
    left, deep = 0, reach(bits)
    for word in range(low, high):
        a, b = starts[word], starts[word + 1]
        if a == b:
            continue
        shared[a] = 0
        if word == _END:
            shared[a + 1 : b] = 1
            continue
        own = keys[a - starts[low] : b - starts[low]]
        if _sort_keys(
            shared, a, b - a, 1, width, bits, own, positions[a:b], keys2, places2, stack, buckets
        ) == 0:  # fmt: skip
            continue
        todo[0, 0], todo[0, 1], todo[0, 2] = a, b, 1 + width
        levels = 1
        while levels > 0:  # depth first: what was just sorted is still cached
            r, end, depth = todo[levels - 1, 0], todo[levels - 1, 1], todo[levels - 1, 2]
            if r >= end:
                levels -= 1
                continue
            e = r + 1
            while e < end and shared[e] == _OPEN:
                e += 1
            todo[levels - 1, 0] = e
            if e - r == 2:
                left += _pair(ids, positions, shared, r, depth, deep)
            elif e - r > 2:
                _make_keys(ids, positions, r, e - r, depth, width, bits, own, places, windows)
                opened = _sort_keys(
                    shared, r, e - r, depth, width, bits, own, places, keys2, places2, stack, buckets
                )
                positions[r:e] = places[: e - r]
                if opened > 0 and depth + width < deep:
                    todo[levels, 0], todo[levels, 1], todo[levels, 2] = r, e, depth + width
                    levels += 1
                elif opened > 0:
                    left += opened
    return left


@compiled(nogil=True)
def rank(positions, shared, first, last, ranks):  # type: ignore[no-untyped-def]
    """Rank the suffixes; those that are equal so far all get the rank of their first one."""
    head = first
    while head > 0 and shared[head] == _OPEN:
        head -= 1
    for r in range(first, last):
        if shared[r] != _OPEN:
            head = r
        ranks[positions[r]] = head


@compiled(nogil=True)
def double(positions, shared, ranks, depth):  # type: ignore[no-untyped-def]
    """Sort what is equal in `depth` tokens by the rank of the suffix `depth` tokens on; double `depth`."""
    groups, largest = 0, 1
    r, n = 0, len(positions)
    while r < n:
        e = r + 1
        while e < n and shared[e] == _OPEN:
            e += 1
        if e - r > 1:
            groups += 1
            largest = max(largest, e - r)
        r = e
    todo = np.empty((max(1, groups), 2), np.uint32)
    groups, r = 0, 0
    while r < n:
        e = r + 1
        while e < n and shared[e] == _OPEN:
            e += 1
        if e - r > 1:
            todo[groups, 0], todo[groups, 1] = r, e
            groups += 1
        r = e
    keys, places = np.empty(largest, np.uint64), np.empty(largest, np.uint32)
    keys2, places2 = np.empty(largest, np.uint64), np.empty(largest, np.uint32)
    stack, buckets = np.empty((64, 2), np.int64), np.empty(1 << _DIGIT, np.int64)
    while groups > 0:
        more = 0
        for g in range(groups):
            more += _split(
                positions,
                ranks,
                np.int64(todo[g, 0]),
                np.int64(todo[g, 1]),
                depth,
                keys,
                keys2,
                places,
                places2,
                stack,
                buckets,
            )
        rest = np.empty((max(1, more), 2), np.uint32)
        more = 0
        for g in range(groups):
            a, b = np.int64(todo[g, 0]), np.int64(todo[g, 1])
            while a < b:  # parts of the group that are still equal share a rank
                last = a + 1
                while last < b and ranks[positions[last]] == ranks[positions[a]]:
                    last += 1
                if last - a > 1:
                    rest[more, 0], rest[more, 1] = a, last
                    more += 1
                a = last
        todo, groups = rest, more
        depth *= 2


@compiled(nogil=True)
def _split(  # type: ignore[no-untyped-def]
    positions, ranks, first, last, depth, keys, keys2, places, places2, stack, buckets
):
    """Sort one group by the ranks further on, give its parts new ranks, and return how many stay equal."""
    m = last - first
    for i in range(m):
        places[i] = positions[first + i]
        keys[i] = ranks[np.int64(places[i]) + depth]
    if m >= _RADIX_FROM:
        _radix(keys, places, m, 32, keys2, places2, buckets)
    else:
        _quick(keys, places, 0, m, stack)
    head, equal = first, 0
    for i in range(m):
        if i > 0 and keys[i] != keys[i - 1]:
            head = first + i
        elif i == 1 or (i > 1 and keys[i - 1] != keys[i - 2]):
            equal += 1
        positions[first + i] = places[i]
        ranks[places[i]] = head
    return equal


@compiled(nogil=True)
def share_deep(ids, positions, shared, first, last, depth):  # type: ignore[no-untyped-def]
    """Count the common tokens of neighbours that were sorted by ranks, up to the most a byte holds."""
    for r in range(max(first, 1), last):
        if shared[r] == _OPEN:
            a, b = np.int64(positions[r - 1]), np.int64(positions[r])
            common = depth
            while common < _MOST and ids[a + common] == ids[b + common]:
                common += 1
                if ids[a + common - 1] == _END:
                    break
            shared[r] = common


@compiled(nogil=True)
def mark(shared, first, last, marks):  # type: ignore[no-untyped-def]
    """Set marks[d-1, j+1]: how many of the j-th `STRIDE` suffixes share exactly d tokens with the last."""
    levels = marks.shape[0]
    for j in range(first, last):
        for r in range(j * STRIDE, min((j + 1) * STRIDE, len(shared))):
            d = shared[r]
            if 0 < d <= levels:
                marks[d - 1, j + 1] += 1

"""Compiled smoothing: the mass each context gives up, and the shorter context mixed in.

The plain version is `smoothing.interpolated`; a test compares them.
"""

from __future__ import annotations

import numpy as np

from nextword.system.compiled import compiled

_BLOCK = 256  # contexts prefetched before they are processed


@compiled(nogil=True)
def counts_of_counts(values, first, last, found):  # type: ignore[no-untyped-def]
    """Count the values that are 0, 1, 2, 3, 4."""
    for i in range(first, last):
        if values[i] < 5:
            found[values[i]] += 1


@compiled(nogil=True)
def interpolate(  # type: ignore[no-untyped-def]
    children,
    words,
    values,
    D,
    kinds,
    extra,
    plain,
    threshold,
    links,
    below_children,
    below_words,
    below_probs,
    first,
    last,
    probs,
    gamma,
    new_links,
):
    """Compute p = u + gamma(c) p(w | c without its first token), for the contexts first … last-1.

    u and gamma as in `smoothing.plan`: u = (n - D(n)) / total, gamma = the rest.
    If a `plain` count is not above the `threshold`, the n-gram will be dropped: gamma gets its u.
    The tokens after c are in the same order among those after the shorter context, which are
    more: each is found by galloping on from the one before it. `links` is empty if the
    distribution below depends on the token alone. Contexts are processed in blocks, and each block
    in phases that first only read, so that cache misses overlap.
    """
    keep, by_word = len(new_links) > 0, len(links) == 0
    widest = np.int64(0)
    for c in range(first, last):
        widest = max(widest, np.int64(children[c + 1]) - np.int64(children[c]))
    low, high = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    room = widest + 8 * _BLOCK
    place, weight = np.empty(room, np.int64), np.empty(room, np.float64)
    touched = np.int64(0)
    c = first
    while c < last:
        start = np.int64(children[c])
        e = c + 1
        while e < last and e - c < _BLOCK and np.int64(children[e + 1]) - start <= room:
            e += 1
        if not by_word:
            for k in range(e - c):
                link = links[c + k]
                low[k], high[k] = below_children[link], below_children[link + 1]
            for k in range(e - c):
                touched += below_words[min(low[k], len(below_words) - 1)]
        for k in range(e - c):
            a, b = np.int64(children[c + k]), np.int64(children[c + k + 1])
            if a == b:
                gamma[c + k] = 1.0
                continue
            total = kinds * (b - a) + extra
            taken = total
            for i in range(a, b):
                total += values[i]
                taken += D[min(values[i], 3)]
            if len(plain) > 0:
                for i in range(a, b):
                    if plain[i] <= threshold:
                        taken += values[i] - D[min(values[i], 3)]
            scale, share = 1.0 / total, taken / total
            gamma[c + k] = share
            j = low[k]
            for i in range(a, b):
                probs[i] = (values[i] - D[min(values[i], 3)]) * scale
                weight[i - start] = share
                if by_word:
                    place[i - start] = words[i]
                else:
                    j = gallop(below_words, words[i], j, high[k])
                    place[i - start] = j
        for i in range(start, np.int64(children[e])):
            j = place[i - start]
            probs[i] = probs[i] + weight[i - start] * below_probs[j]
            if keep:
                new_links[i] = j
        c = e
    return touched


@compiled(nogil=True)
def gallop(words, word, j, end):  # type: ignore[no-untyped-def]
    """Return the first place from j on, before `end`, whose token is not smaller."""
    if words[j] >= word:
        return j
    step = 1
    while j + step < end and words[j + step] < word:
        j += step
        step <<= 1
    high = min(j + step, end)
    j += 1
    while j < high:
        middle = (j + high) >> 1
        if words[middle] < word:
            j = middle + 1
        else:
            high = middle
    return j

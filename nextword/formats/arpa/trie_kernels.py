"""Compiled sorting and linking of n-grams: what `arpa.trie` does with NumPy for small files.

Sort, then walk: once both orders are sorted, each prefix is found by one pass along the two, and each suffix
among the extensions of its prefix's own suffix. The plain versions are in `arpa.trie`.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from nextword.system.compiled import compiled


@compiled(nogil=True)
def pack(rows, bits, first, last, keys):
    """Pack the words ``first … last-1`` of each row into one number."""
    for i in range(len(rows)):
        key = np.uint64(0)
        for k in range(first, last):
            key = (key << np.uint64(bits)) | np.uint64(rows[i, k])
        keys[i] = key


@compiled(nogil=True)
def ascending(rows):
    """Tell whether the rows are sorted by their words from first to last; our own files are."""
    for i in range(1, len(rows)):
        for k in range(rows.shape[1]):
            if rows[i - 1, k] != rows[i, k]:
                if rows[i - 1, k] > rows[i, k]:
                    return False
                break
    return True


@compiled(nogil=True)
def sort_runs(high, low, order):
    """Sort ``low`` within runs of equal ``high`` keys, and move ``order`` with it."""
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and high[stop] == high[start]:
            stop += 1
        if stop - start <= 24:
            for i in range(start + 1, stop):
                key, item, j = low[i], order[i], i
                while j > start and low[j - 1] > key:
                    low[j], order[j] = low[j - 1], order[j - 1]
                    j -= 1
                low[j], order[j] = key, item
        else:  # heap sort
            size = stop - start
            for top in range(size // 2 - 1, -1, -1):
                _sink(low, order, start, top, size)
            for last in range(start + size - 1, start, -1):
                low[start], low[last] = low[last], low[start]
                order[start], order[last] = order[last], order[start]
                _sink(low, order, start, 0, last - start)
        start = stop


@compiled(nogil=True)
def _sink(low, order, start, top, size):
    key, item, hole = low[start + top], order[start + top], top
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        if child + 1 < size and low[start + child + 1] > low[start + child]:
            child += 1
        if low[start + child] <= key:
            break
        low[start + hole], order[start + hole] = low[start + child], order[start + child]
        hole = child
    low[start + hole], order[start + hole] = key, item


@compiled(nogil=True)
def link(rows, above_rows, children, parents):
    """Walk once along both sorted lists and find where the extensions of each shorter n-gram start.

    ``parents`` gets the node of each n-gram's prefix, or -1. Return how many have none, and the first place
    that equals its neighbour, or -1.
    """
    n = rows.shape[1]
    above, missing, twice = 0, 0, -1
    children[0] = 0
    for i in range(len(rows)):
        shared = 0
        if i > 0:
            while shared < n and rows[i, shared] == rows[i - 1, shared]:
                shared += 1
            if shared == n and twice < 0:
                twice = i
        if i > 0 and shared >= n - 1:
            parents[i] = parents[i - 1]
            missing += parents[i] < 0
            continue
        comparison = 1
        while above < len(above_rows):
            comparison = 0
            for k in range(n - 1):
                if above_rows[above, k] != rows[i, k]:
                    comparison = -1 if above_rows[above, k] < rows[i, k] else 1
                    break
            if comparison >= 0:
                break
            above += 1
            children[above] = i
        parents[i] = above if comparison == 0 else -1
        missing += comparison != 0
    while above < len(above_rows):
        above += 1
        children[above] = len(rows)
    return missing, twice


@compiled(nogil=True)
def suffixes(words, parents, parent_suffix, children, above_words, found):
    """Find the node of each n-gram without its first word, or -1: a child of its prefix's own suffix.

    ``children`` and ``above_words``: the trie one level up. Return how many are missing.
    """
    missing, before, place = 0, -1, 0
    for i in range(len(words)):
        suffix = parent_suffix[parents[i]]
        if suffix < 0:
            found[i] = -1
            missing += 1
            continue
        low, high = np.int64(children[suffix]), np.int64(children[suffix + 1])
        if parents[i] == before:
            low = max(low, place)  # words of one prefix ascend: continue where the last one was
        before = parents[i]
        stop = high
        while low < high:
            middle = (low + high) >> 1
            if above_words[middle] < words[i]:
                low = middle + 1
            else:
                high = middle
        place = low
        if low < stop and above_words[low] == words[i]:
            found[i] = low
        else:
            found[i] = -1
            missing += 1
    return missing

"""Compiled packing of numbers of few bits, and the search for each n-gram without its first token.

The plain versions are `bitfields` and `prune.links`; tests compare them.
"""

from __future__ import annotations

import numpy as np

from nextword.ngram.fast.interpolation_kernels import gallop
from nextword.system.compiled import compiled


@compiled(nogil=True)
def pack(values, widths, data):  # type: ignore[no-untyped-def]
    """Write each value into the next bits of zeroed bytes."""
    place = np.int64(0)
    for i in range(len(values)):
        value, byte = np.uint64(values[i]) << np.uint64(place & 7), place >> 3
        while value != 0:
            data[byte] |= np.uint8(value & np.uint64(255))
            value >>= np.uint64(8)
            byte += 1
        place += np.int64(widths[i])


@compiled(nogil=True)
def unpack(data, widths, values):  # type: ignore[no-untyped-def]
    """Read each value from the next bits; the bytes go on for a word after the last."""
    place = np.int64(0)
    for i in range(len(values)):
        byte, width, word = place >> 3, np.int64(widths[i]), np.uint64(0)
        for k in range((width + (place & 7) + 7) >> 3):
            word |= np.uint64(data[byte + k]) << np.uint64(8 * k)
        ones = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
        values[i] = (word >> np.uint64(place & 7)) & ones
        place += width


@compiled(nogil=True)
def links(children, words, context_links, below_children, below_words, found):  # type: ignore[no-untyped-def]
    """Find each n-gram without its first token; False if one is not there."""
    for c in range(len(children) - 1):
        first, last = np.int64(children[c]), np.int64(children[c + 1])
        link = context_links[c]
        j, end = np.int64(below_children[link]), np.int64(below_children[link + 1])
        for i in range(first, last):
            j = gallop(below_words, words[i], j, end) if j < end else end
            if j >= end or below_words[j] != words[i]:
                return False
            found[i] = j
    return True


@compiled(nogil=True)
def spread(children, found, below, codes, table, left, least, probs, weights):  # type: ignore[no-untyped-def]
    """Scale the extensions of each context to the mass it does not leave; the weight divides the rest.

    ``left[c]`` is replaced by what the shorter context leaves if that is less than ``least``.
    """
    for c in range(len(children) - 1):
        first, last = np.int64(children[c]), np.int64(children[c + 1])
        weights[c] = 1.0
        if first == last:
            continue
        total, covered = 0.0, 0.0
        for i in range(first, last):
            total += table[codes[i]]
            covered += below[found[i]]
        rest, mass = max(1.0 - covered, 0.0), left[c]
        if rest < least:
            mass = rest
        else:
            weights[c] = mass / rest
        for i in range(first, last):
            probs[i] = table[codes[i]] * ((1.0 - mass) / total)

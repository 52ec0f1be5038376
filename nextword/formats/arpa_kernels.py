"""Compiled ARPA lines: formatting n-grams from the trie, and parsing them back.

"ARPA lines emitted from the trie path" instead of one string operation per word. Each kernel works on a
range and releases the GIL, so threads share the work; the plain twins are in `arpa_lines` and `arpa_trie`.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
# ruff: noqa: ANN001, ANN201, ANN202

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

Array = np.ndarray[Any, np.dtype[Any]]
_TAB, _NEWLINE, _SPACE, _MINUS, _POINT, _ZERO, _RETURN, _PLUS = 9, 10, 32, 45, 46, 48, 13, 43
_LARGEST = 37.0
_LN10 = math.log(10.0)
U32, U64 = np.uint32, np.uint64
PADDING = 16


@intrinsic
def _move16(context, target, to, source, start):
    """Copy 16 bytes, aligned or not, in two instructions: lines take half the time of a loop over bytes."""
    signature = types.void(target, to, source, start)

    def generate(context, builder, signature, args):
        block = ir.VectorType(ir.IntType(8), 16).as_pointer()
        into = make_array(signature.args[0])(context, builder, args[0]).data
        out_of = make_array(signature.args[2])(context, builder, args[2]).data
        load = builder.load(builder.bitcast(builder.gep(out_of, [args[3]]), block))
        load.align = 1
        builder.store(load, builder.bitcast(builder.gep(into, [args[1]]), block)).align = 1
        return context.get_dummy_value()

    return signature, generate


@njit(cache=True, nogil=True, inline="always")
def _copy(out, at, source, start, size):
    """Copy bytes in blocks; up to `PADDING` bytes beyond both ends are touched."""
    done = U64(0)
    while done < size:
        _move16(out, at + done, source, start + done)
        done += U64(16)
    return at + size


@njit(cache=True, nogil=True, inline="always")
def _put_number(out, at, number, pairs):
    """A fixed-point number with seven decimals, below 100; zero is the single digit 0."""
    if number == 0:
        out[at] = _ZERO
        return at + U64(1)
    if number < 0:
        out[at] = _MINUS
        at += U64(1)
        number = -number
    rest = U32(number)
    whole = rest // U32(10_000_000)
    rest -= whole * U32(10_000_000)
    if whole >= U32(10):
        out[at] = U32(_ZERO) + whole // U32(10)
        at += U64(1)
    a = rest // U32(1_000_000)
    rest -= a * U32(1_000_000)
    b = rest // U32(10_000)
    rest -= b * U32(10_000)
    c = rest // U32(100)
    d = rest - c * U32(100)
    out[at] = U32(_ZERO) + whole % U32(10)
    out[at + U64(1)] = _POINT
    out[at + U64(2)] = U32(_ZERO) + a
    out[at + U64(3)] = pairs[U64(2) * U64(b)]
    out[at + U64(4)] = pairs[U64(2) * U64(b) + U64(1)]
    out[at + U64(5)] = pairs[U64(2) * U64(c)]
    out[at + U64(6)] = pairs[U64(2) * U64(c) + U64(1)]
    out[at + U64(7)] = pairs[U64(2) * U64(d)]
    out[at + U64(8)] = pairs[U64(2) * U64(d) + U64(1)]
    return at + U64(9)


@njit(cache=True, nogil=True)
def format_lines(out, numbers, backoffs, words, parents, prefixes, arena, offsets, pairs, prefix):
    """The lines of neighbouring n-grams; returns how many bytes of ``out`` they took.

    ``parents``: where the n-grams of each prefix start; ``prefixes``: the words of each prefix, one row each;
    ``prefix``: room for the longest one. ``backoffs`` is empty at the highest order. All sizes and ids were
    checked by `arpa_writer`; indices are unsigned because that spares a test for negative ones each time.
    """
    depth = prefixes.shape[1]
    ends = np.zeros(depth + 1, np.uint64)
    with_backoff = len(backoffs) > 0
    at = U64(0)
    for p in range(prefixes.shape[0]):
        k = 0
        if p > 0:
            while k < depth and prefixes[p, k] == prefixes[p - 1, k]:
                k += 1
        while k < depth:  # only from the first word that differs
            word = U64(prefixes[p, k])
            place = _copy(prefix, ends[k], arena, offsets[word], offsets[word + U64(1)] - offsets[word])
            prefix[place] = _SPACE
            ends[k + 1] = place + U64(1)
            k += 1
        for i in range(parents[p], parents[p + 1]):
            at = _put_number(out, at, numbers[i], pairs)
            out[at] = _TAB
            at = _copy(out, at + U64(1), prefix, U64(0), ends[depth])
            word = U64(words[i])
            at = _copy(out, at, arena, offsets[word], offsets[word + U64(1)] - offsets[word])
            if with_backoff:
                out[at] = _TAB
                at = _put_number(out, at + U64(1), backoffs[i], pairs)
            out[at] = _NEWLINE
            at += U64(1)
    return at


# ---- reading --------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _hash(data, start, stop):
    value = np.uint64(0xCBF29CE484222325)
    for i in range(start, stop):
        value = (value ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
    return value ^ (value >> np.uint64(29))


@njit(cache=True, nogil=True)
def fill_table(arena, offsets, table):
    """Put every word into an open-addressing table of ids (-1: free); its size is a power of two."""
    mask = np.uint64(len(table) - 1)
    for word in range(len(offsets) - 1):
        slot = _hash(arena, offsets[word], offsets[word + 1]) & mask
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = word


@njit(cache=True, nogil=True)
def _find(data, start, stop, arena, offsets, table):
    mask = np.uint64(len(table) - 1)
    slot = _hash(data, start, stop) & mask
    while True:
        word = table[slot]
        if word < 0:
            return -1
        first = offsets[word]
        if offsets[word + 1] - first == stop - start:
            same = True
            for b in range(stop - start):
                if data[start + b] != arena[first + b]:
                    same = False
                    break
            if same:
                return word
        slot = (slot + np.uint64(1)) & mask


@njit(cache=True, nogil=True)
def _number(data, start, stop):
    """The decimal number in a field, and whether it is one."""
    at, negative = start, False
    if at < stop and (data[at] == _MINUS or data[at] == _PLUS):
        negative = data[at] == _MINUS
        at += 1
    value, digits, scale = 0.0, 0, 0
    while at < stop and _ZERO <= data[at] <= _ZERO + 9:
        value = value * 10.0 + (data[at] - _ZERO)
        digits += 1
        at += 1
    if at < stop and data[at] == _POINT:
        at += 1
        while at < stop and _ZERO <= data[at] <= _ZERO + 9:
            if scale > -18:  # more decimals do not change a float32
                value = value * 10.0 + (data[at] - _ZERO)
                scale -= 1
            digits += 1
            at += 1
    if digits == 0:
        return 0.0, False
    if at < stop and (data[at] == 101 or data[at] == 69):  # e or E
        at += 1
        minus, power, many = False, 0, 0
        if at < stop and (data[at] == _MINUS or data[at] == _PLUS):
            minus = data[at] == _MINUS
            at += 1
        while at < stop and _ZERO <= data[at] <= _ZERO + 9:
            power = min(power * 10 + (data[at] - _ZERO), 10_000)
            many += 1
            at += 1
        if many == 0:
            return 0.0, False
        scale += -power if minus else power
    if scale < 0:
        value /= 10.0 ** float(-scale)
    elif scale > 0:
        value *= 10.0 ** float(scale)
    return -value if negative else value, at == stop and value < 1e300


@njit(cache=True, nogil=True)
def parse_lines(data, start, end, highest, arena, offsets, table, rows, probs, backoffs):
    """Parse n-gram lines into arrays that have a place for each; returns -1, or the byte of a bad line.

    What is wrong with a bad line is not said here: `arpa_lines.parse_line` and its caller do that.
    """
    n = rows.shape[1]
    at, row = start, 0
    while at < end:
        line = at
        if row >= len(probs):
            return line
        field, backoff, p = 0, 0.0, 0.0
        while True:
            while at < end and (data[at] == _SPACE or data[at] == _TAB or data[at] == _RETURN):
                at += 1
            if at >= end or data[at] == _NEWLINE:
                break
            first = at
            while at < end and not (
                data[at] == _SPACE or data[at] == _TAB or data[at] == _NEWLINE or data[at] == _RETURN
            ):
                at += 1
            if field == 0:
                value, fine = _number(data, first, at)
                if not fine or value > 0.0:
                    return line
                p = math.exp(value * _LN10)
            elif field <= n:
                word = _find(data, first, at, arena, offsets, table)
                if word < 0:
                    return line
                rows[row, field - 1] = word
            elif field == n + 1:
                backoff, fine = _number(data, first, at)
                if not fine or backoff > _LARGEST or (highest and backoff != 0.0):
                    return line
            else:
                return line
            field += 1
        if field < n + 1:
            return line
        probs[row] = p
        if not highest:
            backoffs[row] = math.exp(backoff * _LN10)
        row += 1
        at += 1
    return -1 if row == len(probs) else end


@njit(cache=True, nogil=True)
def count_lines(data, start, end):
    """How many newlines there are in a range."""
    total = 0
    for i in range(start, end):
        total += data[i] == _NEWLINE
    return total


# ---- the trie -------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def pack(rows, bits, first, last, keys):
    """The words ``first … last-1`` of each row as one number."""
    for i in range(len(rows)):
        key = np.uint64(0)
        for k in range(first, last):
            key = (key << np.uint64(bits)) | np.uint64(rows[i, k])
        keys[i] = key


@njit(cache=True, nogil=True)
def sort_runs(high, low, order):
    """Within runs of equal ``high`` keys, put ``order`` into the order of the ``low`` keys (heap sort)."""
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and high[order[stop]] == high[order[start]]:
            stop += 1
        size = stop - start
        if size <= 24:
            for i in range(start + 1, stop):
                item, j = order[i], i
                while j > start and low[order[j - 1]] > low[item]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = item
        else:
            for top in range(size // 2 - 1, -1, -1):
                _sink(low, order, start, top, size)
            for last in range(size - 1, 0, -1):
                order[start], order[start + last] = order[start + last], order[start]
                _sink(low, order, start, 0, last)
        start = stop


@njit(cache=True, nogil=True)
def _sink(low, order, start, top, size):
    item, hole = order[start + top], top
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        if child + 1 < size and low[order[start + child + 1]] > low[order[start + child]]:
            child += 1
        if low[order[start + child]] <= low[item]:
            break
        order[start + hole] = order[start + child]
        hole = child
    order[start + hole] = item


@njit(cache=True, nogil=True)
def link(rows, order, above_rows, above_order, children, parents):
    """One walk along both sorted lists: where the extensions of each shorter n-gram start.

    ``parents`` gets the node of each n-gram's prefix, or -1. Returns how many have none, and the first place
    (in sorted order) that equals its neighbour, or -1.
    """
    n = rows.shape[1]
    above, missing, twice = 0, 0, -1
    children[0] = 0
    for i in range(len(order)):
        row = order[i]
        if i > 0 and twice < 0:
            same = True
            for k in range(n):
                if rows[row, k] != rows[order[i - 1], k]:
                    same = False
                    break
            if same:
                twice = i
        comparison = 1
        while above < len(above_order):
            other = above_order[above]
            comparison = 0
            for k in range(n - 1):
                if above_rows[other, k] != rows[row, k]:
                    comparison = -1 if above_rows[other, k] < rows[row, k] else 1
                    break
            if comparison >= 0:
                break
            above += 1
            children[above] = i
        if comparison == 0 and above < len(above_order):
            parents[i] = above
        else:
            parents[i] = -1
            missing += 1
    while above < len(above_order):
        above += 1
        children[above] = len(order)
    return missing, twice


@njit(cache=True, nogil=True)
def suffixes(words, parents, parent_suffix, children, above_words, found):
    """The node of each n-gram without its first word, or -1: a child of its prefix's own suffix.

    ``children`` and ``above_words``: the trie one level up. Returns how many are missing.
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
            low = max(low, place)  # words of one prefix ascend: go on where the last one was
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

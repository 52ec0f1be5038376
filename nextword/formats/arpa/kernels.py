"""Compiled ARPA lines: formatting n-grams from the trie, and parsing them back.

"ARPA lines emitted from the trie path" instead of one string operation per word. Each kernel works on a
range and releases the GIL, so threads share the work; the plain versions are in `arpa.lines`.
"""

# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from nextword.system.compiled import compiled

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


@compiled(nogil=True, inline="always")
def _copy(out, at, source, start, size):
    """Copy bytes in blocks; up to `PADDING` bytes beyond both ends are touched."""
    done = U64(0)
    while done < size:
        _move16(out, at + done, source, start + done)
        done += U64(16)
    return at + size


@compiled(nogil=True, inline="always")
def _put_number(out, at, number, pairs):
    """Write a fixed-point number with seven decimals, below 100; zero is the single digit 0."""
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


@compiled(nogil=True)
def format_lines(out, numbers, backoffs, words, parents, prefixes, arena, offsets, pairs, prefix):
    """Write the lines of neighbouring n-grams and return how many bytes of ``out`` they took.

    ``parents``: where the n-grams of each prefix start; ``prefixes``: the words of each prefix, one row each;
    ``prefix``: room for the longest one. ``backoffs`` is empty at the highest order. All sizes and ids were
    checked by `arpa.writer`; indices are unsigned because that spares a test for negative ones each time.
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


@compiled(nogil=True, inline="always")
def _hash(data, start, stop):
    value = U64(0xCBF29CE484222325)
    for i in range(start, stop):
        value = (value ^ U64(data[i])) * U64(0x100000001B3)
    return value ^ (value >> U64(29))


@compiled(nogil=True)
def fill_table(arena, offsets, table):
    """Put every word into an open-addressing table of ids (-1: free); its size is a power of two."""
    mask = U64(len(table) - 1)
    for word in range(len(offsets) - 1):
        slot = _hash(arena, offsets[word], offsets[word + 1]) & mask
        while table[slot] >= 0:
            slot = (slot + U64(1)) & mask
        table[slot] = word


@compiled(nogil=True)
def _find(data, start, stop, arena, offsets, table):
    mask = U64(len(table) - 1)
    slot = _hash(data, start, stop) & mask
    while True:
        word = table[slot]
        if word < 0:
            return -1
        first = offsets[U64(word)]
        if offsets[U64(word) + U64(1)] - first == stop - start:
            same = True
            for b in range(stop - start):
                if data[start + b] != arena[first + b]:
                    same = False
                    break
            if same:
                return word
        slot = (slot + U64(1)) & mask


@compiled(nogil=True, inline="always")
def _same(data, one, other, size):
    """Tell whether two pieces of the text are equal."""
    for b in range(size):  # noqa: SIM110 - a compiled loop
        if data[one + b] != data[other + b]:
            return False
    return True


@compiled(nogil=True)
def _number(data, start, stop, powers):
    """Parse the decimal number in a field; return also whether it is one. ``powers``: 10^0 … 10^18."""
    at, negative = start, False
    if at < stop and (data[at] == _MINUS or data[at] == _PLUS):
        negative = data[at] == _MINUS
        at += U64(1)
    digits, decimals, whole, first = U64(0), 0, 0.0, at
    while at < stop and _ZERO <= data[at] <= _ZERO + 9:
        whole = whole * 10.0 + (data[at] - _ZERO)
        at += U64(1)
    some = at > first
    if at < stop and data[at] == _POINT:
        at += U64(1)
        first = at
        while at < stop and _ZERO <= data[at] <= _ZERO + 9:
            if decimals < 18:  # more do not change a float32
                digits = digits * U64(10) + U64(data[at] - _ZERO)
                decimals += 1
            at += U64(1)
        some |= at > first
    value = whole + np.float64(digits) / powers[decimals]
    if some and at < stop and (data[at] == 101 or data[at] == 69):  # e or E
        at += U64(1)
        minus, power, first = False, 0, at
        if at < stop and (data[at] == _MINUS or data[at] == _PLUS):
            minus = data[at] == _MINUS
            at += U64(1)
            first = at
        while at < stop and _ZERO <= data[at] <= _ZERO + 9:
            power = min(power * 10 + np.int64(data[at] - _ZERO), 10_000)
            at += U64(1)
        some = at > first
        value *= 10.0 ** float(-power if minus else power)
    return -value if negative else value, some and at == stop and value < 1e300


@compiled(nogil=True)
def parse_lines(data, start, end, highest, arena, offsets, table, powers, rows, probs, backoffs):
    """Parse n-gram lines into arrays that have a place for each; return -1, or the byte of a bad line.

    A word at the same place as in the line before is not looked up again: in sorted files, from first to
    last word or from last to first, most are. What is wrong with a bad line is reported by
    `arpa.lines.parse_line` and its caller.
    """
    n = rows.shape[1]
    before = np.zeros(n, np.uint64)  # where the words of the line before are
    sizes = np.full(n, U64(0xFFFFFFFF))
    at, end, row = U64(start), U64(end), 0
    while at < end:
        line = at
        if row >= len(probs):
            return np.int64(line)
        field, backoff, p = 0, 0.0, 0.0
        while True:
            while at < end and (data[at] == _SPACE or data[at] == _TAB or data[at] == _RETURN):
                at += U64(1)
            if at >= end or data[at] == _NEWLINE:
                break
            first = at
            while at < end and (
                data[at] > _SPACE or not (data[at] == _SPACE or 9 <= data[at] <= 10 or data[at] == _RETURN)
            ):
                at += U64(1)
            if field == 0:
                value, fine = _number(data, first, at, powers)
                if not fine or value > 0.0:
                    return np.int64(line)
                p = math.exp(value * _LN10)
            elif field <= n:
                size = at - first
                if row > 0 and size == sizes[field - 1] and _same(data, before[field - 1], first, size):
                    rows[row, field - 1] = rows[row - 1, field - 1]
                else:
                    word = _find(data, first, at, arena, offsets, table)
                    if word < 0:
                        return np.int64(line)
                    rows[row, field - 1] = word
                before[field - 1], sizes[field - 1] = first, size
            elif field == n + 1:
                backoff, fine = _number(data, first, at, powers)
                if not fine or backoff > _LARGEST or (highest and backoff != 0.0):
                    return np.int64(line)
            else:
                return np.int64(line)
            field += 1
        if field < n + 1:
            return np.int64(line)
        probs[row] = p
        if not highest:
            backoffs[row] = 1.0 if backoff == 0.0 else math.exp(backoff * _LN10)
        row += 1
        at += U64(1)
    return -1 if row == len(probs) else np.int64(end)


@compiled(nogil=True)
def count_lines(data, start, end):
    """Count the newlines in a range."""
    total = 0
    for i in range(start, end):
        total += data[i] == _NEWLINE
    return total

"""One pass over the bytes of a text: split at whitespace, look up or add every word.

Open addressing (Knuth, The Art of Computer Programming 3, section 6.4). Compiled by numba, running
without the interpreter's lock; the plain twin is ``PlainScanner`` in ``text/scan.py``, and a test
compares the two.

A word's key is exact up to seven bytes (the bytes and the length); above that it is a hash with the
top bit set, and the word itself is compared. Words are stored in one arena, each followed by a newline.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import END, START
from nextword.system.compiled import compiled

Array = np.ndarray[Any, np.dtype[Any]]

# Indices into `cursor`, which carries the scan from call to call.
AT, FILLED, USED, NEXT_ID, OPEN, HAS_WORD, ODD, BEGUN, ENDED, MISSED = range(10)
FIRST_WORD = 3  # ids 0, 1, 2 are UNKNOWN, START, END

# Unsigned indices save numba the test for negative ones, which is measurable in the inner loop.
_U = np.uint64
_EXACT = _U(7)
_MIX = _U(0x9E3779B97F4A7C15)
_LONG = _U(0x8000000000000000)


@compiled(nogil=True)
def _long_key(data: Array, start: Any, stop: Any) -> Any:
    """Return the key of a word of more than seven bytes (FNV-1a and a final mix)."""
    key = _U(0xCBF29CE484222325)
    for i in range(start, stop):
        key = (key ^ _U(data[i])) * _U(0x100000001B3)
    return (key ^ (key >> _U(29))) | _LONG


@compiled(nogil=True)
def _short_key(data: Array, start: Any, stop: Any) -> Any:
    """Return the key of a word of at most seven bytes: its bytes, below its length."""
    key = _U(0)
    for i in range(start, stop):
        key = (key << _U(8)) | _U(data[i])
    return key | (_U(stop - start) << _U(56))


@compiled(nogil=True)
def _place(slots: Array, shift: Any, key: Any, index: Any) -> None:
    """Put a new key into the first free slot (a slot is a key and an id)."""
    mask = _U(len(slots) // 2 - 1)
    slot = (key * _MIX) >> shift
    while slots[slot + slot] != 0:
        slot = (slot + _U(1)) & mask
    slots[slot + slot] = key
    slots[slot + slot + _U(1)] = _U(index)


@compiled(nogil=True)
def fill(slots: Array, shift: Any, arena: Array, starts: Array, ids: Array) -> None:
    """Insert the words that start at ``starts`` in the arena with these ids."""
    for word in range(len(starts)):
        start = _U(starts[word])
        stop = start
        while stop < _U(len(arena)) and arena[stop] != 10:
            stop += _U(1)
        short = stop - start <= _EXACT
        key = _short_key(arena, start, stop) if short else _long_key(arena, start, stop)
        _place(slots, shift, key, ids[word])


@compiled(nogil=True)
def move(old: Array, slots: Array, shift: Any) -> None:
    """Insert every word of an old table into a larger one."""
    for slot in range(len(old) // 2):
        if old[2 * slot] != 0:
            _place(slots, shift, old[2 * slot], old[2 * slot + 1])


@compiled(nogil=True)
def _find(data: Array, span: Any, key: Any, slots: Array, shift: Any, arena: Array, starts: Array) -> Any:
    """Return the slot of a word, or the free slot for it, and its id, or -1."""
    start, length = span
    mask = _U(len(slots) // 2 - 1)
    slot = (key * _MIX) >> shift
    while True:
        found = slots[slot + slot]
        if found == 0:
            return slot, np.int64(-1)
        if found == key:
            word = np.int64(slots[slot + slot + _U(1)])
            if length <= _EXACT or word < FIRST_WORD:
                return slot, word
            offset = _U(starts[word - FIRST_WORD])
            same = offset + length < _U(len(arena)) and arena[offset + length] == 10
            j = _U(0)
            while same and j < length:
                same = arena[offset + j] == data[start + j]
                j += _U(1)
            if same:
                return slot, word
        slot = (slot + _U(1)) & mask


@compiled(nogil=True)
def next_word(data: Any, at: Any, table: Any) -> Any:
    """Return the id of the first word from a place on (0: unknown, -1: none is left) and where it ends."""
    slots, shift, arena, starts = table
    one, n, i = _U(1), _U(len(data)), _U(at)
    while i < n and (data[i] == 32 or 9 <= data[i] <= 13):
        i += one
    if i == n:
        return np.int64(-1), np.int64(n)
    start, key = i, _U(0)
    while i < n:
        b = data[i]
        if b <= 32 and (b == 32 or 9 <= b <= 13):
            break
        key = (key << _U(8)) | _U(b)
        i += one
    length = i - start
    key = (key | (length << _U(56))) if length <= _EXACT else _long_key(data, start, i)
    _, word = _find(data, (start, length), key, slots, shift, arena, starts)
    return max(word, np.int64(0)), np.int64(i)


@compiled(nogil=True)
def word_at(data: Any, length: Any, table: Any) -> Any:
    """Return the id of a word, which is all the data; 0 if it is unknown."""
    slots, shift, arena, starts = table
    zero = _U(0)
    key = _short_key(data, zero, length) if length <= _EXACT else _long_key(data, zero, length)
    _, word = _find(data, (zero, length), key, slots, shift, arena, starts)
    return max(word, np.int64(0))


@compiled(nogil=True)
def scan(
    data: Array,
    flags: Any,
    cursor: Array,
    ids: Array,
    gaps: Any,
    table: Any,
    room: int,
) -> None:
    """Write ids and gaps of the data from ``cursor[AT]`` on; stop early when an array is full.

    ``flags``: (the text ends with this data, lines are sequences, learn new words). ``gaps``: (how
    often each kind had its expected gap, then kind, start and stop of every other one). ``table``:
    (slots, shift, arena, starts); the arena must have room for the data, ``starts`` for ``room`` words.
    Without learning an unknown word gets id 0. Kinds: 0 leading, 1 inner, 2 trailing, 3 blank line.
    """
    last, lines, learn = flags
    expected, odd_kind, odd_start, odd_stop = gaps
    slots, shift, arena, starts = table
    one, n = _U(1), _U(len(data))
    i, m, used = _U(cursor[AT]), _U(cursor[FILLED]), _U(cursor[USED])
    next_id, odd = cursor[NEXT_ID], cursor[ODD]
    is_open, has_word = cursor[OPEN] != 0, cursor[HAS_WORD] != 0
    spaces = leads = trails = begun = ended = missed = 0
    while room > 0 and odd < len(odd_kind):
        if i >= n and not (last and (is_open or (i == n and not lines))):
            break  # an empty document is an empty sequence, an empty line after the last newline is not one
        if not is_open:
            ids[m] = START
            m += one
            begun += 1
            is_open, has_word = True, False
        gap, b = i, np.uint8(10)
        while i < n:  # the whitespace before the next word or the end
            b = data[i]
            if b > 32 or not (b == 32 or 9 <= b <= 13) or (lines and b == 10):
                break
            i += one
        at_end = i == n or (lines and b == 10)
        if has_word and not at_end and i - gap == one and data[gap] == 32:
            spaces += 1
        elif i == gap and not (has_word and not at_end):
            if not at_end:
                leads += 1
            elif has_word:
                trails += 1
            else:
                expected[3] += 1
        else:
            odd_kind[odd] = (2 if has_word else 3) if at_end else (1 if has_word else 0)
            odd_start[odd], odd_stop[odd] = gap, i
            odd += 1
        if at_end:
            ids[m] = END
            m += one
            ended += 1
            is_open = False
            i += one
            continue
        start, key = i, _U(0)
        while b > 32 or not (b == 32 or 9 <= b <= 13):  # the word
            key = (key << _U(8)) | _U(b)
            i += one
            if i == n:
                break
            b = data[i]
        length = i - start
        key = (key | (length << _U(56))) if length <= _EXACT else _long_key(data, start, i)
        slot, word = _find(data, (start, length), key, slots, shift, arena, starts)
        if word < 0:
            word = 0
            if learn:
                room -= 1
                word = next_id
                starts[next_id - FIRST_WORD] = used
                for j in range(length):
                    arena[used + j] = data[start + j]
                arena[used + length] = 10
                used += length + one
                slots[slot + slot], slots[slot + slot + one] = key, _U(word)
                next_id += 1
        missed += word == 0
        ids[m] = word
        m += one
        has_word = True
    expected[0] += leads
    expected[1] += spaces
    expected[2] += trails
    cursor[AT], cursor[FILLED], cursor[USED], cursor[NEXT_ID] = i, m, used, next_id
    cursor[OPEN], cursor[HAS_WORD], cursor[ODD] = is_open, has_word, odd
    cursor[BEGUN] += begun
    cursor[ENDED] += ended
    cursor[MISSED] += missed

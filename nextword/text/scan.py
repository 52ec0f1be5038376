"""Words to ids: a plain scanner for small texts and a compiled one for large ones.

Both split at ASCII whitespace only, give new words ids in order of first occurrence, and count the
gaps between words. The compiled one is the plain one, line by line, in ``text/kernels.py``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from nextword.core.contracts import END, START, UNKNOWN, Encoded, Unit
from nextword.text.chunks import Chunk
from nextword.text.vocab import FIRST_WORD, Vocabulary

Array = np.ndarray[Any, np.dtype[Any]]

# Up to this many bytes the plain scanner is used, so that a small run never waits for numba.
SMALL = 2_000_000

LEADING, INNER, TRAILING, BLANK = range(4)  # kinds of gaps: before the first word, a later one, the end
EXPECTED = (b"", b" ", b"", b"")  # the usual gap of each kind
GapCounts = Counter[tuple[int, bytes]]

_GAP_WORD = re.compile(rb"([ \t\v\f\r\n]*)([^ \t\v\f\r\n]*)")


class Scanned(NamedTuple):
    """The ids of a chunk, the counts of its gaps, and the counts of START, END and UNKNOWN."""

    ids: Array  # int32
    gaps: GapCounts
    begun: int
    ended: int
    unknown: int


class PlainScanner:
    """A dictionary from words to ids. With ``learn`` it adds every new word."""

    def __init__(self, index: dict[bytes, int], size: int, unit: Unit, learn: bool) -> None:
        self.index, self.size, self.lines, self.learn = index, size, unit == "line", learn

    def scan(self, chunk: Chunk) -> Scanned:
        """Return the ids and gaps of one chunk."""
        ids: list[int] = []
        gaps: GapCounts = Counter()
        is_open, has_word = chunk.is_open, chunk.has_word
        lines = chunk.data.split(b"\n") if self.lines else [chunk.data]
        for number, line in enumerate(lines, start=1):
            final = number == len(lines)
            if final and not line and not (is_open and chunk.last) and (self.lines or not chunk.last):
                break  # nothing follows the last newline
            if not is_open:
                ids.append(START)
                has_word = False
            words = line.split()
            self._look_up(words, ids)
            self._count_gaps(line, words, has_word, not final or chunk.last, gaps)
            is_open = final and not chunk.last
            has_word = has_word or bool(words)
            if not is_open:
                ids.append(END)
        return Scanned(np.array(ids, np.int32), gaps, ids.count(START), ids.count(END), ids.count(UNKNOWN))

    def _look_up(self, words: list[bytes], ids: list[int]) -> None:
        index = self.index
        if not self.learn:
            ids.extend([index.get(word, UNKNOWN) for word in words])
            return
        for word in words:
            found = index.get(word)
            if found is None:
                found = index[word] = self.size
                self.size += 1
            ids.append(found)

    @staticmethod
    def _count_gaps(line: bytes, words: list[bytes], has_word: bool, ends: bool, gaps: GapCounts) -> None:
        """Count the gap before every word, and the one before the end if the line ends here."""
        if words and not has_word and b" ".join(words) == line:
            gaps[LEADING, b""] += 1
            if len(words) > 1:
                gaps[INNER, b" "] += len(words) - 1
            if ends:
                gaps[TRAILING, b""] += 1
            return
        for gap, word in _GAP_WORD.findall(line):
            if word:
                gaps[INNER if has_word else LEADING, gap] += 1
                has_word = True
            else:
                if ends:
                    gaps[TRAILING if has_word else BLANK, gap] += 1
                break

    def joined(self) -> bytes:
        """Return the words in order of their ids, each followed by a newline."""
        return b"".join(word + b"\n" for word, found in self.index.items() if found >= FIRST_WORD)

    def words_from(self, index: int) -> list[bytes]:
        """Return the words from this id on."""
        newest = list(islice(reversed(self.index), max(0, self.size - index)))
        return newest[::-1]


class FastScanner:
    """The same in compiled code: 150 MB/s and more on one core, without blocking other threads."""

    def __init__(self, joined: bytes, unit: Unit, learn: bool, literal_unknown: bool = False) -> None:
        from nextword.text import kernels

        self.kernels, self.lines, self.learn = kernels, unit == "line", learn
        self.arena = np.frombuffer(joined, np.uint8).copy()
        ends = np.flatnonzero(self.arena == ord("\n"))
        self.starts = np.concatenate(([0], ends + 1))[:-1].astype(np.int64)
        self.size, self.used = FIRST_WORD + len(ends), len(joined)
        self._make_table(max(1 << 12, 4 * len(ends)))
        kernels.fill(self.slots, self.shift, self.arena, self.starts, np.arange(FIRST_WORD, self.size))
        if literal_unknown:
            special = np.frombuffer(b"<unk>\n", np.uint8).copy()
            kernels.fill(self.slots, self.shift, special, np.zeros(1, np.int64), np.zeros(1, np.int64))

    def _make_table(self, places: int) -> None:
        """Create an empty table of at least this many slots; a slot is two numbers, a key and an id."""
        bits = int(places - 1).bit_length()
        self.slots, self.shift = np.zeros(2 << bits, np.uint64), np.uint64(64 - bits)

    @property
    def _capacity(self) -> int:
        """Number of words the table holds before it must grow."""
        return len(self.slots) // 4

    def scan(self, chunk: Chunk) -> Scanned:
        """Return the ids and gaps of one chunk. Without ``learn``, threads may call this concurrently."""
        data = np.frombuffer(chunk.data, np.uint8)
        cursor = np.array([0, 0, self.used, self.size, chunk.is_open, chunk.has_word, 0, 0, 0, 0], np.int64)
        ids = np.empty(2 * len(data) + 3, np.int32)
        expected, odd = np.zeros(4, np.int64), _empty_spans(256)
        if self.learn:
            self.arena = _with_room(self.arena, self.used + len(data) + 1)
        k = self.kernels
        while True:
            room = 1
            if self.learn:
                self._grow()
                room = self._capacity - self.size
            table = (self.slots, self.shift, self.arena, self.starts)
            k.scan(data, (chunk.last, self.lines, self.learn), cursor, ids, (expected, *odd), table, room)
            if self.learn:
                self.used, self.size = int(cursor[k.USED]), int(cursor[k.NEXT_ID])
            is_full = cursor[k.ODD] == len(odd[0])
            if not is_full and not (self.learn and self.size == self._capacity):
                break  # stopped by the end of the data
            if is_full:
                odd = tuple(_with_room(array, 4 * len(array)) for array in odd)
        gaps: GapCounts = Counter()
        for kind, count in enumerate(expected.tolist()):
            if count:
                gaps[kind, EXPECTED[kind]] = count
        _count_odd(chunk.data, data, [array[: cursor[k.ODD]] for array in odd], gaps)
        counts = cursor[[k.BEGUN, k.ENDED, k.MISSED]].tolist()
        return Scanned(ids[: cursor[k.FILLED]].copy(), gaps, *counts)

    def _grow(self) -> None:
        """Make room for new words, in the table and in the list of their starts."""
        if self._capacity - self.size < 1024:
            old = self.slots
            self._make_table(len(old))  # a slot is two numbers: twice as many slots
            self.kernels.move(old, self.slots, self.shift)
        self.starts = _with_room(self.starts, self._capacity)

    def joined(self) -> bytes:
        """Return the words in order of their ids, each followed by a newline."""
        return self.arena[: self.used].tobytes()

    def words_from(self, index: int) -> list[bytes]:
        """Return the words from this id on."""
        if index >= self.size:
            return []
        return self.arena[self.starts[index - FIRST_WORD] : self.used].tobytes().split(b"\n")[:-1]


def _empty_spans(size: int) -> tuple[Array, ...]:
    return np.empty(size, np.uint8), np.empty(size, np.int64), np.empty(size, np.int64)


def _with_room(array: Array, size: int) -> Array:
    """Return the same array, or a longer copy of it."""
    if len(array) >= size:
        return array
    longer = np.empty(max(size, len(array) + len(array) // 2), array.dtype)
    longer[: len(array)] = array
    return longer


def _count_odd(raw: bytes, data: Array, spans: Iterable[Array], gaps: GapCounts) -> None:
    """Add the unusual gaps to the counts; gaps of up to seven bytes without a Python loop."""
    kinds, starts, stops = spans
    lengths = stops - starts
    short = lengths <= 7
    codes = (kinds[short].astype(np.int64) << 3) | lengths[short]
    for j in range(7):
        inside = j < lengths[short]
        codes <<= 8
        codes[inside] |= data[starts[short][inside] + j]
    for code, count in zip(*np.unique(codes, return_counts=True), strict=True):
        head, length = int(code) >> 56, (int(code) >> 56) & 7
        text = (int(code) & (1 << 56) - 1).to_bytes(7, "big")[:length]
        gaps[head >> 3, text] += int(count)
    long = ~short
    for kind, start, stop in zip(
        kinds[long].tolist(), starts[long].tolist(), stops[long].tolist(), strict=True
    ):
        gaps[kind, raw[start:stop]] += 1


class Scanner:
    """Starts with the plain scanner and switches to the compiled one when the text turns out to be large."""

    def __init__(self, vocab: Vocabulary, unit: Unit, learn: bool, small: int | None = None) -> None:
        self.vocab, self.unit, self.learn = vocab, unit, learn
        self.small = SMALL if small is None else small
        self.seen = 0
        self.inner: PlainScanner | FastScanner | None = None

    def prepare(self, size: int) -> PlainScanner | FastScanner:
        """Return the scanner to use, given how many more bytes are coming."""
        self.seen += size
        if self.seen > self.small and not isinstance(self.inner, FastScanner):
            joined = self.joined() if self.learn else self.vocab.joined
            self.inner = FastScanner(joined, self.unit, self.learn, self.vocab.literal_unknown)
        elif self.inner is None:
            index = dict(self.vocab.index) if self.learn else self.vocab.index
            self.inner = PlainScanner(index, len(self.vocab), self.unit, self.learn)
        return self.inner

    def scan(self, chunk: Chunk) -> Scanned:
        """Return the ids and gaps of one chunk."""
        return self.prepare(len(chunk.data)).scan(chunk)

    def joined(self) -> bytes:
        """Return the words known so far in order of their ids, each followed by a newline."""
        return self.vocab.joined if self.inner is None else self.inner.joined()

    def words_from(self, index: int) -> list[bytes]:
        """Return the words known so far from this id on."""
        return [] if self.inner is None else self.inner.words_from(index)


def encoded(found: Scanned, chunk: Chunk, unit: Unit, nats: float = 0.0) -> Encoded:
    """Return a scanned chunk with its counts; where lines are sequences, a line end counts as a word."""
    words = len(found.ids) - found.begun - (0 if unit == "line" else found.ended)
    documents = _document_starts(found.ids, chunk) if unit == "line" else None
    return Encoded(found.ids, found.begun, words, chunk.bytes, found.unknown, nats, documents)


def _document_starts(ids: Array, chunk: Chunk) -> tuple[int, ...]:
    """Return the positions of STARTs that start a document."""
    if chunk.documents in ((), (0,)) and not chunk.is_open:
        return chunk.documents  # the usual case: a file starts or continues here
    starts = np.flatnonzero(ids == START)
    return tuple(starts[list(chunk.documents)].tolist())

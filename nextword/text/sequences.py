"""Documents or lines as pieces of bytes, and pieces as packed ids, for characters, bytes and subwords.

A document may be larger than memory: it arrives in several pieces, the first starts it, the last ends it.
Small ones are merged, so that a million short records do not take a million calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.core.contracts import END, START, UNKNOWN, Block, Encoded, Unit
from nextword.text.chunks import GATHER, SPACES
from nextword.text.patterns import Pattern

Array = np.ndarray[Any, np.dtype[Any]]
_IS_SPACE = np.zeros(256, bool)
_IS_SPACE[list(SPACES)] = True


@dataclass(frozen=True)
class Piece:
    """Bytes of one sequence, never cut inside a character."""

    data: bytes
    begins: bool
    ends: bool
    raw: int  # bytes of the file it covers, including a line's newline
    words: int  # whitespace-separated words that start in it
    begins_document: bool = False  # its sequence is the first of a document


def pieces(blocks: Iterable[Block], unit: Unit) -> Iterator[list[Piece]]:
    """Yield the text of the blocks in batches of pieces, in bounded memory."""
    batch: list[Piece] = []
    size = 0
    for piece in _lines(_documents(blocks)) if unit == "line" else _documents(blocks):
        batch.append(piece)
        size += len(piece.data) + 16
        if size >= GATHER:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _documents(blocks: Iterable[Block]) -> Iterator[Piece]:
    waiting, is_open, in_word = b"", False, False
    for block in blocks:
        data = waiting + block.data if waiting else block.data
        cut = len(data) if block.ends_document else character_end(data)
        data, waiting = data[:cut], data[cut:]
        yield Piece(data, not is_open, block.ends_document, len(data), count_words(data, in_word))
        is_open = not block.ends_document
        in_word = is_open and (data[-1] not in SPACES if data else in_word)
    if is_open or waiting:
        yield Piece(waiting, not is_open, True, len(waiting), count_words(waiting, in_word))


def _lines(documents: Iterable[Piece]) -> Iterator[Piece]:
    is_open = in_word = is_new = False
    for piece in documents:
        is_new = is_new or piece.begins
        *whole, rest = piece.data.split(b"\n")
        for line in whole:
            yield Piece(line, not is_open, True, len(line) + 1, count_words(line, in_word), is_new)
            is_open = in_word = is_new = False
        if rest or (piece.ends and is_open):
            yield Piece(rest, not is_open, piece.ends, len(rest), count_words(rest, in_word), is_new)
            is_open, is_new = not piece.ends, False
            in_word = is_open and (rest[-1] not in SPACES if rest else in_word)


def character_end(data: bytes) -> int:
    """Return the end of the last complete UTF-8 character of the data."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if length > back else len(data)
    return len(data)


def count_words(data: bytes, in_word: bool) -> int:
    """Count the whitespace-separated words starting here; ``in_word``: the first may have started before."""
    if not data:
        return 0
    if len(data) < 4096:
        return len(data.split()) - (in_word and data[0] not in SPACES)
    space = _IS_SPACE[np.frombuffer(data, np.uint8)]
    first = not (space[0] or in_word)
    return int(np.count_nonzero(space[:-1] & ~space[1:])) + int(first)


def pack(batch: list[Piece], to_ids: Callable[[list[Piece]], list[Array]], unit: Unit) -> Encoded:
    """Pack a batch into one Encoded: START before each sequence that starts, END after each one that ends."""
    start, end = np.array([START], np.int32), np.array([END], np.int32)
    parts: list[Array] = []
    documents: list[int] = []
    size = 0
    for piece, ids in zip(batch, to_ids(batch), strict=True):
        if piece.begins_document:
            documents.append(size)
        if piece.begins:
            parts.append(start)
        parts.append(ids)
        if piece.ends:
            parts.append(end)
        size += len(ids) + piece.begins + piece.ends
    ids = np.concatenate(parts).astype(np.int32, copy=False)
    words = sum(piece.words for piece in batch)
    if unit == "line":
        words += sum(piece.ends for piece in batch)
    raw = sum(piece.raw for piece in batch)
    unknown = int(np.count_nonzero(ids == UNKNOWN))
    begun = sum(piece.begins for piece in batch)
    found = tuple(documents) if unit == "line" else None
    return Encoded(ids, begun, words, raw, unknown, documents=found)


def file_sequences(data: bytes, unit: Unit) -> list[bytes]:
    """Return the sequences of a whole file: its lines, or the file itself."""
    if unit == "document":
        return [data]
    lines = data.split(b"\n")
    return lines if lines[-1] else lines[:-1]


class PlainJoiner:
    """Turns tokens back into bytes where there are no side symbols.

    An END gives a newline where lines are sequences; at the end the bytes are cut to the length of the file.
    """

    def __init__(self, data: Callable[[int], bytes], unit: Unit) -> None:
        self._data, self._end = data, b"\n" if unit == "line" else b""

    def begin(self) -> None:
        """Start a new file; there is no state to reset."""

    def push(self, index: int) -> Generator[Array, int, bytes]:
        """Return the bytes of one token; ask for nothing."""
        return self._end if index == END else self._data(index)
        yield  # this makes it a generator, as the joiner of words is


_LONG = 1 << 15  # a line longer than twice this is cut


def text_pieces(blocks: Iterable[Block], unit: Unit, pattern: Pattern) -> Iterator[Piece]:
    """Yield the parts of a stream of text; the last part of a block is held back until the next block."""
    waiting, begins, words, is_first = b"", False, 0, False
    for batch in pieces(blocks, unit):
        for piece in batch:
            begins, words = begins or piece.begins, words + piece.words
            is_first = is_first or piece.begins_document
            found = list(parts(waiting + piece.data, pattern))
            waiting = b"" if piece.ends else found.pop()
            newline = piece.raw - len(piece.data)  # the newline belongs to the last part of a line
            for number, part in enumerate(found, start=1):
                ends = piece.ends and number == len(found)
                yield Piece(part, begins, ends, len(part) + (newline if ends else 0), words, is_first)
                begins, words, is_first = False, 0, False


def parts(data: bytes, pattern: Pattern) -> Iterator[bytes]:
    """Cut the data after line ends, and long lines inside; yield at least one part, possibly empty."""
    start = 0
    for match in pattern.line_end.finditer(data):
        yield from _chopped(data[start : match.end()], pattern)
        start = match.end()
    yield from _chopped(data[start:], pattern)


def _chopped(line: bytes, pattern: Pattern) -> Iterator[bytes]:
    """Cut a very long line into parts, at places that depend only on its own start.

    A part without a place that the pattern allows (32 KB of one run of letters) is cut between characters.
    """
    while len(line) > 2 * _LONG + 4:
        match = pattern.inside.search(line, _LONG, 2 * _LONG)
        end = match.end() if match else character_end(line[: 2 * _LONG]) or 2 * _LONG
        yield line[:end]
        line = line[end:]
    yield line

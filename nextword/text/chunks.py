"""Split the blocks of a reader into chunks that never cut a word.

A block may end anywhere (a line of a gigabyte is cut somewhere); whatever may continue in the next block,
the last word and the gap before it, is held back. Small documents are merged, so that a file of a
million short records does not take a million calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nextword.core.contracts import Block, Unit
from nextword.core.errors import DataError

BLANKS = b" \t\v\f\r"  # gaps inside a line; a newline ends it
SPACES = BLANKS + b"\n"  # ASCII whitespace: everything that separates words

# A word must not be longer than this: it has to fit into memory whole.
WORD_LIMIT = 1 << 24
# Documents shorter than this are merged into one chunk.
GATHER = 1 << 20


@dataclass(frozen=True)
class Chunk:
    """Data that ends after a word, after a line end, or with its document."""

    data: bytes
    is_open: bool  # a sequence continues from the previous chunk
    has_word: bool  # and already has a word
    last: bool  # the sequence ends with this data, with or without a newline
    bytes: int  # raw bytes of the blocks that end in it
    documents: tuple[int, ...] = ()  # which of the lines starting here start a document; 0 is the first


def word_chunks(blocks: Iterable[Block], unit: Unit) -> Iterator[Chunk]:
    """Split the text of the blocks into chunks that can be scanned independently."""
    return _line_chunks(blocks) if unit == "line" else _document_chunks(blocks)


def _line_chunks(blocks: Iterable[Block]) -> Iterator[Chunk]:
    parts: list[bytes] = []
    places: list[int] = []  # where documents start in the parts
    size = raw = 0
    is_open, has_word, is_new = False, False, True
    for block in blocks:
        raw += len(block.data)
        if block.data:
            if is_new:
                places.append(size)
            is_new = False
            parts.append(block.data)
            size += len(block.data)
        if block.ends_document:
            is_new = True
            if block.data[-1:] not in (b"\n", b"") or (not block.data and parts and parts[-1][-1:] != b"\n"):
                parts.append(b"\n")  # the end of the document ends its last line
                size += 1
            if size < GATHER:
                continue
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        kept = _safe_end(data, BLANKS, block)
        lines = _lines_at(data, [place for place in places if place < kept], is_open)
        yield Chunk(data[:kept] if kept < len(data) else data, is_open, has_word, False, raw, lines)
        if kept:
            is_open = has_word = data[kept - 1 : kept] != b"\n"
        parts = [data[kept:]] if kept < len(data) else []
        places = [place - kept for place in places if place >= kept]
        size, raw = len(data) - kept, 0
    if parts or is_open or raw:
        data = b"".join(parts)
        yield Chunk(data, is_open, has_word, True, raw, _lines_at(data, places, is_open))


def _lines_at(data: bytes, places: list[int], is_open: bool) -> tuple[int, ...]:
    """Return the numbers of the lines that start at these places, among those that start in the data."""
    lines, number, before = [], -1 if is_open else 0, 0
    for place in places:
        number += data.count(b"\n", before, place)
        lines.append(number)
        before = place
    return tuple(lines)


def _document_chunks(blocks: Iterable[Block]) -> Iterator[Chunk]:
    waiting = b""
    is_open = has_word = False
    for block in blocks:
        data = waiting + block.data if waiting else block.data
        if block.ends_document:
            yield Chunk(data, is_open, has_word, True, len(block.data))
            waiting, is_open, has_word = b"", False, False
            continue
        kept = _safe_end(data, SPACES, block)
        yield Chunk(data[:kept], is_open, has_word, False, len(block.data))
        waiting = data[kept:]
        if kept:
            is_open = has_word = True
    if waiting or is_open:
        yield Chunk(waiting, is_open, has_word, True, 0)


def _safe_end(data: bytes, blanks: bytes, block: Block) -> int:
    """Return where the data can be cut: after the last line end or the last complete word."""
    if data[-1:] == b"\n" and b"\n" not in blanks:
        return len(data)
    end = len(data.rstrip(blanks))
    if end < len(data):
        return end
    word = 1 + max(data.rfind(bytes([space])) for space in SPACES)
    if len(data) - word > WORD_LIMIT:
        raise DataError(
            f"there is a word of more than {WORD_LIMIT >> 20} MB here, too long for the tokenizer 'words'; "
            "check that the file is text, or use --tokenizer bytes",
            block.source or None,
            block.line,
        )
    return len(data[:word].rstrip(blanks))

"""Cut a text before subwords are searched: after a newline that is followed by a word.

The cuts are part of the tokenizer's definition, made at every such place, so that the tokens of a text do
not depend on the blocks it was read in. Very long lines are cut at fixed distances from their start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nextword.core.contracts import Block, Unit
from nextword.text.sequences import Piece, character_end, pieces

_LONG = 1 << 15  # a line longer than twice this is cut
_LINE_END = re.compile(rb"\n(?=[^ \t\v\f\r\n])")
_INSIDE = re.compile(rb"[A-Za-z](?= [A-Za-z])")  # no token spans the space between two words


def text_pieces(blocks: Iterable[Block], unit: Unit) -> Iterator[Piece]:
    """Yield the parts of a stream of text; the last part of a block is held back until the next block."""
    waiting, begins, words, is_first = b"", False, 0, False
    for batch in pieces(blocks, unit):
        for piece in batch:
            begins, words = begins or piece.begins, words + piece.words
            is_first = is_first or piece.begins_document
            found = list(parts(waiting + piece.data))
            waiting = b"" if piece.ends else found.pop()
            newline = piece.raw - len(piece.data)  # the newline belongs to the last part of a line
            for number, part in enumerate(found, start=1):
                ends = piece.ends and number == len(found)
                yield Piece(part, begins, ends, len(part) + (newline if ends else 0), words, is_first)
                begins, words, is_first = False, 0, False


def parts(data: bytes) -> Iterator[bytes]:
    """Cut the data after line ends, and long lines inside; yield at least one part, possibly empty."""
    start = 0
    for match in _LINE_END.finditer(data):
        yield from _chopped(data[start : match.end()])
        start = match.end()
    yield from _chopped(data[start:])


def _chopped(line: bytes) -> Iterator[bytes]:
    """Cut a very long line into parts, at places that depend only on its own start."""
    while len(line) > 2 * _LONG + 4:
        match = _INSIDE.search(line, _LONG, 2 * _LONG)
        end = match.end() if match else character_end(line[: 2 * _LONG]) or 2 * _LONG
        yield line[:end]
        line = line[end:]
    yield line

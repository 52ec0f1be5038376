"""Read plain text as checked blocks that end at a line end; every line-based format is read from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nextword.core.contracts import Block
from nextword.core.errors import DataError
from nextword.data.charset import TextChecker
from nextword.data.files import read_bytes
from nextword.data.paths import Source

BLOCK = 1 << 22  # bytes per block


class NoTokens(DataError):  # noqa: N818 - it names what is missing
    """A file without tokens: an error if the user named it, a note if it was found in a folder."""

    def __init__(self, message: str) -> None:
        super().__init__(message)


def text_blocks(source: Source, checker: TextChecker, one_document: bool = True) -> Iterator[Block]:
    """Yield a plain text as checked blocks, cut at line ends; a very long line spans several blocks."""
    waiting: Block | None = None
    for data in _cut(read_bytes(source)):
        line = checker.line
        data = checker.check(data)
        if waiting is not None:
            yield waiting
        waiting = Block(data, False, source.shown, line)
    try:
        checker.finish()
    except DataError as error:
        if checker.has_words:
            raise
        raise NoTokens(str(error)) from None
    if waiting is not None:
        yield Block(waiting.data, one_document, waiting.source, waiting.line)


def _cut(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut into blocks that end at a line end or, if a line is too long, between two characters."""
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size < BLOCK:
            continue
        data = b"".join(parts)
        end = data.rfind(b"\n") + 1 or _between_characters(data)
        yield data[:end]
        parts, size = [data[end:]], len(data) - end
    data = b"".join(parts)
    if data:
        yield data


def _between_characters(data: bytes) -> int:
    """Return a place near the end that splits neither a UTF-8 character nor a CR LF."""
    end = len(data)
    while end > len(data) - 4 and 0x80 <= data[end - 1] < 0xC0:
        end -= 1
    if data[end - 1] >= 0xC0 or data[end - 1] == 0x0D:
        end -= 1
    return end

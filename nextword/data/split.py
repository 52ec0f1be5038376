"""Split a text in two: the part to train on, and the end, which is held out for validation.

Whole documents are held out if there are many, else lines; the cut is found in one pass and stored as
a document and a line, so that both parts are read as streams of any size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nextword.core.contracts import Block
from nextword.core.errors import DataError
from nextword.data.settings import DataSettings
from nextword.data.source import Names, Source

_TRAINING = " (training part)"
MANY = 40  # from this many documents on, they are kept whole


class TooShort(DataError):  # noqa: N818 - it names what is wrong
    """The text has no line that could be held out."""


@dataclass(frozen=True)
class Cut:
    """The first held-out document, and the first held-out line in it (from 0)."""

    document: int
    line: int


class Part(Source):
    """One part of a split text; it is read like any other text."""

    def __init__(self, whole: Source, cut: Cut, held_out: bool) -> None:
        self.names = tuple(name + (" (held-out part)" if held_out else _TRAINING) for name in whole.names)
        self._whole, self._cut, self._held_out = whole, cut, held_out
        self._hash = hashlib.sha256()

    @property
    def size(self) -> int | None:
        """Unknown before it is read."""
        return None

    @property
    def about(self) -> int | None:
        """Bytes of the whole text, which is mostly the training part; unknown for the held-out part."""
        return None if self._held_out else self._whole.size

    @property
    def was_held_out(self) -> bool:
        """Whether this is the held-out part."""
        return self._held_out

    @property
    def digest(self) -> str:
        """SHA-256 of the part last read."""
        return self._hash.hexdigest()

    @property
    def notes(self) -> list[str]:
        """The reader's notes."""
        return self._whole.notes

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks of this part from its start."""
        self._hash = hashlib.sha256()
        for block in _side(self._whole.blocks(), self._cut, self._held_out):
            self._hash.update(block.data)
            if block.ends_document:
                self._hash.update(b"\0")
            yield block

    def read_through(self) -> str:
        """Read to the end and return the digest."""
        for _ in self.blocks():
            pass
        return self.digest

    def keep(self) -> None:
        """Do nothing: the whole text can already be read again."""

    def shares_a_file_with(self, other: Source) -> str | None:
        """Return None for the other part of the same text, which shares no line; else ask the whole."""
        return None if isinstance(other, Part) else self._whole.shares_a_file_with(other)


def whole_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the whole text for those of its training part."""
    return tuple(name.removesuffix(_TRAINING) for name in names)


def hold_out(
    names: Names, settings: DataSettings, share: float | None = None, most: int | None = None
) -> tuple[Part, Part]:
    """Return the training and the held-out part, about `share` of the bytes (default: ``data.hold_out``).

    The held-out part has at most about `most` bytes.
    """
    names = tuple(names)
    whole = Source.for_training(names, settings)
    measured = whole if whole.size is None else Source.for_reading(names, settings)
    whole.keep()
    cut = _find(whole, settings.hold_out if share is None else share, most)
    return Part(whole, cut, held_out=False), Part(measured, cut, held_out=True)


def divide(source: Source, share: float, most: int | None = None) -> tuple[Part, Part]:
    """Split a text that can be read again; its end may be used for choices, such as mixture weights."""
    cut = _find(source, share, most)
    return Part(source, cut, held_out=False), Part(source, cut, held_out=True)


def _find(source: Source, share: float, most: int | None = None) -> Cut:
    """Return where the last `share` of the bytes starts, at a document or at a line."""
    documents = _documents(source)
    total = sum(size for size, _ in documents)
    wanted = max((1 - share) * total, 0 if most is None else total - most)
    before = 0
    for number, (size, lines) in enumerate(documents):
        is_last = number == len(documents) - 1
        if before + size < wanted and not is_last:
            before += size
            continue
        if len(documents) >= MANY:
            return Cut(number if is_last else number + 1, 0)
        line = min(lines - 1, round(lines * (wanted - before) / size))
        if number or line > 0:
            return Cut(number, max(0, line))
    raise TooShort(
        "the text is too short to hold out a part of it; give more lines, or another text with --valid",
        source.names[0],
    )


def _documents(source: Source) -> list[tuple[int, int]]:
    """Return bytes and lines of every document."""
    found: list[tuple[int, int]] = []
    size = lines = 0
    last = b""
    for block in source.blocks():
        size, lines = size + len(block.data), lines + block.data.count(b"\n")
        last = block.data[-1:] or last
        if block.ends_document:
            found.append((size, lines + (last != b"\n")))
            size = lines = 0
    return [*found, (size, lines + (last != b"\n"))] if size else found


def _side(blocks: Iterator[Block], cut: Cut, held_out: bool) -> Iterator[Block]:
    document = line = 0
    for block in blocks:
        if document > cut.document and not held_out:
            return
        if document != cut.document:
            if (document > cut.document) == held_out:
                yield block
        else:
            missing, here = cut.line - line, block.data.count(b"\n")
            at = _place(block.data, missing)
            if held_out and block.data[at:]:
                yield Block(block.data[at:], block.ends_document, block.source, block.line + max(0, missing))
            elif not held_out and at:
                yield Block(block.data[:at], block.ends_document or missing <= here, block.source, block.line)
            line += here
        if block.ends_document:
            document, line = document + 1, 0


def _place(data: bytes, lines: int) -> int:
    """Return the offset after this many lines."""
    at = 0
    for _ in range(lines):
        at = data.find(b"\n", at) + 1
        if not at:
            return len(data)
    return at

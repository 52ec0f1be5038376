"""The beginning of a text: as much as can be learned from in the time there is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from nextword.core.contracts import Block
from nextword.core.display import show_size
from nextword.data.source import Source


class Beginning(Source):
    """A text that ends after about ``limit`` bytes, at the end of a line; read like any other."""

    def __init__(self, whole: Source, limit: int) -> None:
        self.names = whole.names
        self.limit = limit
        self._whole = whole
        self._hash = hashlib.sha256()
        self._read, self._is_cut = 0, False

    @property
    def size(self) -> int | None:
        """What will be read, where that is known."""
        size = self._whole.size
        return None if size is None else min(size, self.limit)

    @property
    def about(self) -> int | None:
        """The same, roughly."""
        size = self._whole.about
        return None if size is None else min(size, self.limit)

    @property
    def digest(self) -> str:
        """SHA-256 of what was read last."""
        return self._hash.hexdigest()

    @property
    def is_cut(self) -> bool:
        """Whether the last reading left something out."""
        return self._is_cut

    @property
    def notes(self) -> list[str]:
        """What the reader noticed, and whether something was left out."""
        cut = f"only the first {show_size(self._read)} of the text are read: the minutes allow no more"
        return [*self._whole.notes, *([cut] if self._is_cut else [])]

    def blocks(self) -> Iterator[Block]:
        """The text from its beginning up to the limit."""
        self._hash, self._read, self._is_cut = hashlib.sha256(), 0, False
        for block in self._whole.blocks():
            if self._read + len(block.data) >= self.limit:
                room = self.limit - self._read
                end = block.data.find(b"\n", room) + 1 or len(block.data)
                self._is_cut = True
                yield self._counted(replace(block, data=block.data[:end], ends_document=True))
                return
            yield self._counted(block)

    def _counted(self, block: Block) -> Block:
        self._read += len(block.data)
        self._hash.update(block.data)
        if block.ends_document:
            self._hash.update(b"\0")
        return block

    def read_through(self) -> str:
        """Read to the end, for the digest alone."""
        for _ in self.blocks():
            pass
        return self.digest

    def keep(self) -> None:
        """Before a first pass that will not be the last."""
        self._whole.keep()

    def shares_a_file_with(self, other: Source) -> str | None:
        """As the whole."""
        return self._whole.shares_a_file_with(other)

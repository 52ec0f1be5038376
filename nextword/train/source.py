"""A text that is given by names: files, folders, globs, corpora or ``-``, with the rules for reading it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nextword.core.contracts import Block
from nextword.core.events import Note
from nextword.data import readers
from nextword.data.settings import DataSettings
from nextword.train.settings import RunSettings


@dataclass
class Source:
    """What `data.readers` needs, and what is known before anything is read."""

    names: tuple[str, ...]
    settings: DataSettings

    @classmethod
    def for_training(cls, names: Sequence[str | os.PathLike[str]], settings: RunSettings) -> Source:
        return cls(tuple(os.fspath(n) for n in names), settings.data)

    @classmethod
    def for_reading(cls, names: Sequence[str | os.PathLike[str]], settings: RunSettings) -> Source:
        return cls(tuple(os.fspath(n) for n in names), settings.data)

    @property
    def size(self) -> int | None:
        return None

    def blocks(self) -> Iterator[Block]:
        return readers.read(list(self.names), self.settings)

    def lines(self) -> Iterator[Block]:
        return self.blocks()

    def notes(self) -> list[str]:
        return []

    def shares_a_file_with(self, other: Source) -> bool:
        return bool(set(self.names) & set(other.names))

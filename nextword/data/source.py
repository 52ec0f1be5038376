"""A text given by names (files, folders, patterns, corpora, ``-``) that can be read several times.

Names are resolved at once, so that a wrong one fails before any work. Input that can be read only once,
such as standard input, is written to a temporary file if a second pass needs it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import IO, Any, cast

from nextword.core import config
from nextword.core.contracts import Block
from nextword.core.errors import DataError
from nextword.data.paths import same_file
from nextword.data.readers import Reader, read
from nextword.data.settings import DataSettings

Names = Iterable[str | os.PathLike[str]]


class Source:
    """A text, its size, and the reader's notes."""

    def __init__(self, names: Names, settings: DataSettings, raw: bool = False) -> None:
        self.names = tuple(os.fspath(name) for name in names)
        self._settings, self._raw = settings, raw
        self._reader: Reader = self._open()
        self._stamps = _stamps(self._reader)
        self._taken = False
        self._spool: Spool | None = None

    @classmethod
    def for_training(cls, names: Names, settings: DataSettings) -> Source:
        """Create a text to train on: line ends are unified."""
        return cls(names, settings)

    @classmethod
    def for_reading(
        cls, names: Names, settings: DataSettings, sets: Mapping[str, Any] | None = None
    ) -> Source:
        """Create a text to evaluate: every byte counts. ``sets`` are more settings of the group ``data``."""
        changed = settings.model_dump() | _checked(sets or {})
        return cls(names, DataSettings(**changed), raw=True)

    @property
    def size(self) -> int | None:
        """Bytes on disk, if known."""
        return self._reader.size

    @property
    def about(self) -> int | None:
        """The approximate size: a part of a text knows its size only roughly."""
        return self.size

    @property
    def was_held_out(self) -> bool:
        """Whether it was split off the training text, so that it may be trained on in the end."""
        return False

    @property
    def digest(self) -> str:
        """SHA-256 of the text last read."""
        return self._reader.digest

    @property
    def notes(self) -> list[str]:
        """The reader's notes, complete once it has read to the end."""
        return [note.message for note in self._reader.notes]

    def blocks(self) -> Iterator[Block]:
        """Return the blocks of the text from its start."""
        if self._spool is not None:
            return iter(self._spool)
        if self._taken:
            self._reader = self._open()
            self._check_unchanged()
        self._taken = True
        return iter(self._reader)

    def _check_unchanged(self) -> None:
        """Raise a DataError if a file changed: split, vocabulary and ids of two passes must agree."""
        now = _stamps(self._reader)
        for path, was in self._stamps.items():
            if path in now and now[path] != was:
                raise DataError(
                    f"the file changed while being read ({was[0]:,} bytes, then {now[path][0]:,}); "
                    "wait until it is complete, then train again",
                    path,
                )

    def read_through(self) -> str:
        """Read to the end and return the digest."""
        if self._spool is None:
            for _ in self.blocks():
                pass
        return self.digest

    def keep(self) -> None:
        """Save text that can be read only once to a file; call it before the first of several passes."""
        if self.size is None and self._spool is None:
            self._spool = Spool(self.blocks())

    def shares_a_file_with(self, other: Source) -> str | None:
        """Return the first file in both."""
        return same_file(self._reader.sources, other._reader.sources)

    def _open(self) -> Reader:
        return read(self.names, self._settings, raw=self._raw, digest=True)


class Spool:
    """Blocks saved in a temporary file, to be read again."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="nextword-")  # noqa: SIM115 - it lives as long as we
        self._kept: list[tuple[int, bool, str, int]] = []
        for block in blocks:
            self._file.write(block.data)
            self._kept.append((len(block.data), block.ends_document, block.source, block.line))

    def __iter__(self) -> Iterator[Block]:
        self._file.seek(0)
        for size, ends, source, line in self._kept:
            yield Block(self._file.read(size), ends, source, line)

    def __del__(self) -> None:
        self._file.close()


def _stamps(reader: Reader) -> dict[str, tuple[int, int]]:
    """Return size and modification time of every file."""
    found = {}
    for source in reader.sources:
        if source.size is not None:
            with suppress(OSError):
                status = os.stat(source.path)
                found[source.shown] = (status.st_size, status.st_mtime_ns)
    return found


def _checked(sets: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that were set, as plain values; only settings of the group ``data`` are allowed."""
    settings = cast(DataSettings, config.build({"data": DataSettings}, sets)["data"])
    return settings.model_dump(exclude_unset=True)

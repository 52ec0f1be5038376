"""Read any text as a stream of blocks: one pass, bounded memory, every byte checked.

Formats: plain text, gzip, JSON lines, CSV, TSV, Parquet, standard input; folders and patterns of files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from nextword.core.contracts import Block
from nextword.core.errors import DataError
from nextword.core.events import Note
from nextword.data.paths import GZIP, Source, open_binary, resolve
from nextword.data.plain import Fail, NoTokens, TextChecker, stop, text_blocks
from nextword.data.settings import DataSettings
from nextword.data.tables import table_blocks

_AHEAD = 1 << 21  # from this many bytes on, the next block is read ahead

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def read(
    paths: Paths, settings: DataSettings | None = None, *, raw: bool = False, digest: bool = False
) -> Reader:
    """Return the blocks of the user's files; paths are resolved now, contents read when iterated.

    ``raw`` keeps CRLF line ends, for evaluation in bits per byte of the file; ``digest`` computes
    `Reader.digest` along the way.
    """
    return Reader(resolve(paths), settings or DataSettings(), raw, digest)


class Reader:
    """Iterate once for the blocks; afterwards notes, bytes, lines (or records) and digest are complete."""

    def __init__(
        self, sources: list[Source], settings: DataSettings, raw: bool, digest: bool, fail: Fail = stop
    ) -> None:
        """Pass every encoding problem to ``fail``, which may collect them and continue."""
        self.sources, self.settings, self.raw, self._fail = sources, settings, raw, fail
        self.notes: list[Note] = []
        self.bytes = self.lines = self.documents = 0
        self._hash = hashlib.sha256() if digest else None
        self._used = False

    @property
    def size(self) -> int | None:
        """Bytes on disk, if all sources are files."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def digest(self) -> str:
        """SHA-256 of the text and its document ends; empty unless requested."""
        return "" if self._hash is None else self._hash.hexdigest()

    def __iter__(self) -> Iterator[Block]:
        if self._used:
            raise RuntimeError("a reader can be read only once; create another with read()")
        self._used = True
        size = self.size
        blocks = self._counted()
        return blocks if size is None or size < _AHEAD else _ahead(blocks)

    def _counted(self) -> Iterator[Block]:
        empty: list[DataError] = []
        for source in self.sources:
            try:
                yield from self._file(source)
            except NoTokens as error:
                if source.named:
                    raise DataError(*error.args) from None
                empty.append(error)
                self.notes.append(Note(f"{error}; it was skipped"))
        if len(empty) == len(self.sources):
            raise DataError(f"none of the {len(empty)} files contains any tokens; the first is {empty[0]}")

    def _file(self, source: Source) -> Iterator[Block]:
        checker = TextChecker(source.shown, self.settings, self.raw, self._fail)
        kind = source.format if self.settings.format == "auto" else self.settings.format
        if kind == "parquet":
            from nextword.data.parquet import parquet_blocks

            blocks = parquet_blocks(source, self.settings, checker)
        elif kind == "text":
            blocks = text_blocks(source, checker)
        else:
            blocks = table_blocks(source, kind, self.settings, checker)
        last = b"\n"
        for block in blocks:
            self._count(block)
            last = block.data[-1:]
            yield block
        self.lines += checker.newlines + (last != b"\n") if kind == "text" else self.documents
        self.notes.extend(Note(sentence) for sentence in checker.notes())
        if source.path.lower().endswith(".gz") and source.size and not _is_gzip(source):
            self.notes.append(Note(f"{source.shown}: this is plain text although its name ends in .gz"))

    def _count(self, block: Block) -> None:
        self.bytes += len(block.data)
        self.documents += block.ends_document
        if self._hash is not None:
            self._hash.update(block.data)
            if block.ends_document:
                self._hash.update(b"\0")


def _ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield the same blocks, reading the next one ahead in a thread."""
    with ThreadPoolExecutor(1, thread_name_prefix="nextword-read") as pool:
        coming = pool.submit(next, blocks, None)
        while (block := coming.result()) is not None:
            coming = pool.submit(next, blocks, None)
            yield block


def _is_gzip(source: Source) -> bool:
    with open_binary(source) as file:
        return file.read(2) == GZIP

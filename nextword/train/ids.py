"""From a text to packed ids: the tokenizer is fitted on the way, or was made before.

Without a limit the ids stay in memory; within ``train.memory`` they go to a file and are mapped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from nextword.core import catalog
from nextword.core.contracts import Array, Block, Encoded, Tokenizer
from nextword.core.errors import DataError
from nextword.core.events import Event, Note, Progress, Stage
from nextword.text.fit import fit_tokenizer, vocabulary_note
from nextword.train.facts import DataFacts
from nextword.train.settings import RunSettings
from nextword.train.source import Source


@dataclass(frozen=True)
class Text:
    """A training text as a model sees it."""

    tokenizer: Tokenizer
    ids: Array
    facts: DataFacts


def encode(settings: RunSettings, source: Source, scratch: Path | None = None) -> Generator[Event, None, Text]:
    """Tokenizer and ids of a text; yields progress in bytes, then the readers' notes.

    ``scratch``: a folder for the ids, which are then not held in memory.
    """
    name, digest, sink = settings.text.tokenizer, hashlib.sha256(), Sink(scratch)
    unit = None if settings.data.unit == "auto" else settings.data.unit
    if name == "words":  # vocabulary and ids in one pass
        words = catalog.find("tokenizer", name)
        fitting = words.fit_encode(hashed(source.blocks(), digest), settings.text, unit or "line")
        yield from _drain(fitting, sink, source.size)
        tokenizer: Tokenizer = fitting.tokenizer
    else:
        yield Stage("learn the tokenizer")
        tokenizer = fit_tokenizer(name, source.blocks(), settings.text, unit)
        yield from _drain(tokenizer.encode_blocks(hashed(source.blocks(), digest)), sink, source.size)
    for message in source.notes():
        yield Note(message)
    facts = sink.facts(source.names, digest.hexdigest())
    ends = facts.sequences if tokenizer.unit == "line" else 0
    if facts.words - ends <= 0:
        raise DataError("there is no word in it, so there is nothing to learn; give a text with words", source.names[0])
    if tokenizer.name == "words" and (message := vocabulary_note(tokenizer.vocab_size, facts.words)) is not None:
        yield Note(message)
    return Text(tokenizer, sink.ids(), facts)


def hashed(blocks: Iterable[Block], digest: Any) -> Iterator[Block]:
    """The same blocks; their bytes go into the digest on the way."""
    for block in blocks:
        digest.update(block.data)
        yield block


class Sink:
    """Where ids are put: in memory, or in a file of a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "ids.int32"
        self._file: IO[bytes] | None = None if self._path is None else open(self._path, "wb")  # noqa: SIM115
        self._parts: list[Array] = []
        self._totals = {"bytes": 0, "words": 0, "tokens": 0, "sequences": 0, "unknown": 0}

    def put(self, piece: Encoded) -> None:
        """One more piece of the text."""
        for name in self._totals:
            self._totals[name] += getattr(piece, name)
        if self._file is not None:
            self._file.write(np.ascontiguousarray(piece.ids, dtype=np.int32))
        else:
            self._parts.append(piece.ids)

    @property
    def bytes(self) -> int:
        """How much of the text has come."""
        return self._totals["bytes"]

    def facts(self, names: tuple[str, ...], sha256: str) -> DataFacts:
        """What is known of the text."""
        return DataFacts(names, sha256, **self._totals)

    def ids(self) -> Array:
        """All ids, one after another."""
        if self._file is not None and self._path is not None:
            self._file.close()
            empty = self._path.stat().st_size == 0
            return np.empty(0, np.int32) if empty else np.memmap(self._path, dtype=np.int32, mode="r")
        if len(self._parts) == 1:
            return self._parts[0]
        return np.concatenate(self._parts) if self._parts else np.empty(0, np.int32)


def _drain(pieces: Iterable[Encoded], sink: Sink, size: int | None) -> Iterator[Event]:
    yield Stage("read", size, "bytes")
    for piece in pieces:
        sink.put(piece)
        yield Progress(sink.bytes)

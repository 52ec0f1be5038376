"""Encode a text as packed ids; the tokenizer is fitted on the way, or was made before.

Without a limit the ids stay in memory; within ``train.memory`` they go to a file and are mapped.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from nextword.core import catalog
from nextword.core.contracts import Array, Cached, Encoded, OnePass, Tokenizer
from nextword.core.errors import DataError
from nextword.core.events import Event, Note, Progress, Stage
from nextword.data.packed import packed
from nextword.data.settings import DataSettings
from nextword.data.source import Source
from nextword.system.allocator import return_free_memory
from nextword.text.backward import BackwardTokenizer
from nextword.text.scripts import PIECES, unspaced_note
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import fit_tokenizer, vocabulary_note

_PIECE = 1 << 22  # ids hashed at once


@dataclass(frozen=True)
class DataFacts:
    """The text a model was trained on."""

    names: tuple[str, ...] = ()
    sha256: str = ""  # of the bytes that were read, in their order
    bytes: int = 0
    words: int = 0
    tokens: int = 0
    sequences: int = 0
    unknown: int = 0


@dataclass(frozen=True)
class PackedText:
    """A training text as a model sees it."""

    tokenizer: Tokenizer
    ids: Array
    facts: DataFacts
    documents: npt.NDArray[np.int64] | None = None  # offsets of the STARTs that begin one; None: each does


def encode(
    source: Source,
    text: TextSettings,
    data: DataSettings,
    scratch: Path | None = None,
    known: Tokenizer | None = None,
) -> Generator[Event, None, PackedText]:
    """Tokenizer and ids of a text; yields progress in bytes, then the readers' notes.

    ``scratch``: a folder for the ids, which are then not held in memory. ``known``: the tokenizer, if it was
    made before.
    """
    name, sink = text.tokenizer, Sink(scratch)
    unit = None if data.unit == "auto" else data.unit
    kind = catalog.find("tokenizer", name) if name in catalog.names("tokenizer") else None
    is_backward = data.direction == "backward"
    if known is None and not is_backward and isinstance(kind, OnePass):  # vocabulary and ids in one pass
        fitting = kind.fit_encode(source.blocks(), text, unit or "line")
        yield from _drain(fitting, sink, source.size)
        tokenizer: Tokenizer = fitting.tokenizer
    else:
        yield Stage("learn the tokenizer")
        source.keep()
        tokenizer = known or fit_tokenizer(name, source.blocks(), text, unit)
        tokenizer = BackwardTokenizer(tokenizer) if is_backward else tokenizer
        if isinstance(tokenizer, Cached) and tokenizer.unit == "document":
            return (yield from _cached(tokenizer, source))
        yield from _drain(tokenizer.encode_blocks(source.blocks()), sink, source.size)
    yield from _remarks(tokenizer, source, sink.facts(source.names, source.digest))
    return PackedText(tokenizer, sink.ids(), sink.facts(source.names, source.digest), sink.documents())


def _cached(tokenizer: Tokenizer, source: Source) -> Generator[Event, None, PackedText]:
    """Where cutting a text costs more than reading it, its ids are kept and found again by content."""
    yield Stage("encode")
    digest = source.read_through()
    key = packed_key(digest, tokenizer)
    found = packed(key, lambda: tokenizer.encode_blocks(source.blocks()))
    facts = DataFacts(
        source.names, digest, found.bytes, found.words, found.tokens, found.sequences, found.unknown
    )
    yield from _remarks(tokenizer, source, facts)
    return PackedText(tokenizer, found.ids, facts)


def packed_key(digest: str, tokenizer: Tokenizer, costs: bool = False) -> str:
    """Return the cache key of a text's ids: a hash of the text's digest and the whole tokenizer."""
    with tempfile.TemporaryDirectory(prefix="nextword-") as folder:
        path = os.path.join(folder, "tokenizer.json")
        tokenizer.save(path)
        made = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return hashlib.sha256(f"{digest} {made} {costs}".encode()).hexdigest()[:32]


def _remarks(tokenizer: Tokenizer, source: Source, facts: DataFacts) -> Iterator[Event]:
    """What a user should know about the text; one without a word is an error."""
    for message in source.notes:
        yield Note(message)
    ends = facts.sequences if tokenizer.unit == "line" else 0
    if facts.words - ends <= 0:
        raise DataError(
            "no word is in it; give a text with words, so that there is something to learn", source.names[0]
        )
    if tokenizer.name == "words":
        words: Any = tokenizer.forward if isinstance(tokenizer, BackwardTokenizer) else tokenizer
        if (clauses := unspaced_note(words.vocab.first(PIECES))) is not None:
            yield Note(clauses)
    many = None if tokenizer.closed else vocabulary_note(tokenizer.vocab_size, facts.words)
    if many is not None:
        yield Note(many)


class Sink:
    """Where ids are put: in memory, or in a file of a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / "ids.int32"
        self._file: IO[bytes] | None = None
        self._parts: list[Array] = []
        self._totals = {"bytes": 0, "words": 0, "tokens": 0, "sequences": 0, "unknown": 0}
        self._documents: list[npt.NDArray[np.int64]] | None = []
        self._count = 0

    def put(self, piece: Encoded) -> None:
        """One more piece of the text."""
        for name in self._totals:
            self._totals[name] += getattr(piece, name)
        if piece.documents is None:
            self._documents = None
        elif self._documents is not None:
            self._documents.append(np.asarray(piece.documents, np.int64) + self._count)
        self._count += len(piece.ids)
        if self._path is not None:
            self._file = self._file or open(self._path, "wb")  # noqa: SIM115 - closed by `ids`
            self._file.write(np.ascontiguousarray(piece.ids, dtype=np.int32).data)
            return_free_memory()  # the limit counts it
        else:
            self._parts.append(piece.ids)

    @property
    def bytes(self) -> int:
        """How much of the text has come."""
        return self._totals["bytes"]

    def documents(self) -> npt.NDArray[np.int64] | None:
        """Where the STARTs stand that begin a document; None: all of them do."""
        return np.concatenate(self._documents) if self._documents else None

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


def hash_ids(arrays: Iterable[Any]) -> str:
    """Return the SHA-256 of some arrays of ids, piece by piece."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{len(array)} {array.dtype.str};".encode())
        for at in range(0, len(array), _PIECE):
            digest.update(np.ascontiguousarray(array[at : at + _PIECE]).view(np.uint8).data)
    return digest.hexdigest()

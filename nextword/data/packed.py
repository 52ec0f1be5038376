"""Encoded texts on disk: created once, memory-mapped, cached by content.

A file is named by a hash of the text, the tokenizer and the unit, so that nothing stale is ever used; it is
written atomically. The folder is bounded: the least recently used file is evicted. If the folder cannot be
written, everything works without it.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nextword.core.contracts import Encoded
from nextword.core.errors import ConfigError
from nextword.core.settings import parse_size
from nextword.system.disk import writing
from nextword.system.machine import cache_folder

Array = np.ndarray[Any, np.dtype[Any]]
LIMIT = "5G"
_MAGIC = b"nwids\x00\x00\x01"
_HEAD = struct.Struct("<8sqqqqqdq")  # magic, ids, sequences, words, bytes, unknown, side nats, checksum
_ENDING = ".ids"


@dataclass(frozen=True)
class Packed:
    """All ids of a text, in memory or memory-mapped, and their counts."""

    ids: Array
    sequences: int
    words: int
    bytes: int
    unknown: int
    side_nats: float
    path: Path | None = None

    @property
    def tokens(self) -> int:
        """Number of predictions: END counts, START does not."""
        return len(self.ids) - self.sequences


def cache_limit() -> int:
    """Return the size limit of the cached ids in bytes: $NEXTWORD_CACHE_LIMIT, as in 500M; default 5 GB."""
    value = os.environ.get("NEXTWORD_CACHE_LIMIT", LIMIT)
    try:
        return int(str(parse_size(value)))
    except ValueError as error:
        raise ConfigError(f"$NEXTWORD_CACHE_LIMIT is '{value}', which is not a size; {error}") from error


def packed(key: str, encode: Callable[[], Iterable[Encoded]]) -> Packed:
    """Return the ids under this key: memory-mapped from the cache, or made by ``encode`` and cached.

    ``encode`` is called a second time if the disk turns out to be full.
    """
    folder = cache_folder() / "ids"
    path = folder / (key + _ENDING)
    found = _open(path)
    if found is not None:
        with suppress(OSError):
            os.utime(path)  # mark as recently used
        return found
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(path, encode())
    except OSError:
        return _in_memory(encode())
    _make_room(folder, keep=path)
    found = _open(path)
    return _in_memory(encode()) if found is None else found


def _open(path: Path) -> Packed | None:
    """Open and verify a file of ids; None if it is missing or damaged (then it is deleted)."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD.size)
        magic, count, sequences, words, size, unknown, nats, checksum = _HEAD.unpack(head)
        if magic != _MAGIC or os.path.getsize(path) != _HEAD.size + 4 * count:
            raise ValueError("its size has changed")
        ids = np.memmap(path, np.int32, "r", _HEAD.size, (count,)) if count else np.zeros(0, np.int32)
        if zlib.crc32(ids.view(np.uint8).data) != checksum:
            raise ValueError("its contents have changed")
    except (ValueError, struct.error):
        with suppress(OSError):
            path.unlink()
        return None
    except OSError:
        return None
    return Packed(ids, sequences, words, size, unknown, nats, path)


def _write(path: Path, parts: Iterable[Encoded]) -> None:
    """Write the file atomically, readable by its owner only: it holds the text."""
    with writing(path, mode=0o600) as file:
        file.write(bytes(_HEAD.size))
        count = checksum = 0
        totals = _Totals()
        for part in parts:
            data = np.ascontiguousarray(part.ids, np.int32)
            file.write(data.data)
            checksum = zlib.crc32(data.data, checksum)
            count += len(data)
            totals.add(part)
        file.seek(0)
        file.write(_HEAD.pack(_MAGIC, count, *totals.counts(), totals.nats, checksum))


def _in_memory(parts: Iterable[Encoded]) -> Packed:
    totals, ids = _Totals(), []
    for part in parts:
        totals.add(part)
        ids.append(part.ids)
    joined = np.concatenate(ids) if ids else np.zeros(0, np.int32)
    return Packed(joined, *totals.counts(), totals.nats)


class _Totals:
    """The counts of all parts together."""

    def __init__(self) -> None:
        self.sequences = self.words = self.bytes = self.unknown = 0
        self.nats = 0.0

    def add(self, part: Encoded) -> None:
        self.sequences += part.sequences
        self.words += part.words
        self.bytes += part.bytes
        self.unknown += part.unknown
        self.nats += part.side_nats

    def counts(self) -> tuple[int, int, int, int]:
        return self.sequences, self.words, self.bytes, self.unknown


def _make_room(folder: Path, keep: Path) -> None:
    """Evict the least recently used files until the folder is within its limit, and leftovers of crashes."""
    files = sorted(_files(folder), key=lambda item: item[1])
    total, limit = sum(size for _, _, size in files), cache_limit()
    for path, _, size in files:
        if total <= limit:
            return
        if path != keep:
            with suppress(OSError):
                path.unlink()
                total -= size


def _files(folder: Path) -> Iterator[tuple[Path, float, int]]:
    for path in folder.iterdir():
        if path.suffix in (_ENDING, ".part"):
            with suppress(OSError):
                status = path.stat()
                yield path, status.st_mtime, status.st_size

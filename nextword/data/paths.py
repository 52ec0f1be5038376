"""Turn what the user named into a list of files: files, folders, patterns, ``-``, and corpora by name.

Everything wrong with a path is reported here, before a byte is read; a name that does not exist is
answered with the nearest existing ones.
"""

from __future__ import annotations

import difflib
import errno
import glob
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from nextword.core.errors import DataError
from nextword.data.corpora import corpus_files, corpus_names
from nextword.store.manifest import MANIFEST
from nextword.store.unfinished import checkpoints_in

STDIN = ("-", "/dev/stdin")
ENDINGS = {
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".raw": "text",
    ".tok": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}


@dataclass(frozen=True)
class Source:
    """One file to read."""

    path: str
    named: bool = True  # the user named it; False: it was found in a folder or by a pattern
    size: int | None = None  # None: readable only once (a pipe, standard input)
    title: str = ""  # how it is called in messages, where that is not its path

    @property
    def shown(self) -> str:
        """Its name in messages; a file name that is not UTF-8 is shown with escapes."""
        if self.title or self.path in STDIN:
            return self.title or "standard input"
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")

    @property
    def format(self) -> str:
        """The format its extension implies."""
        name = self.path.lower().removesuffix(".gz")
        return ENDINGS.get(os.path.splitext(name)[1], "text")


def resolve(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Source]:
    """Return the files the user named, in order; those of a folder or a pattern sorted by name."""
    named = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not named:
        raise DataError(
            "no data was given; give a file, a folder, a pattern, a corpus or - for standard input"
        )
    return [source for path in named for source in _resolve_one(os.fspath(path))]


def _resolve_one(path: str) -> list[Source]:
    if path in STDIN:
        return [Source(path)]
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return _not_a_path(path)
    except (OSError, ValueError) as error:
        raise DataError(_why(error), Source(path).shown) from error
    if stat.S_ISDIR(found.st_mode):
        return _folder(path)
    return [_file(path, found, named=True)]


def _file(path: str, found: os.stat_result, named: bool) -> Source:
    return Source(path, named, found.st_size if stat.S_ISREG(found.st_mode) else None)


def _folder(path: str) -> list[Source]:
    if os.path.isfile(os.path.join(path, MANIFEST)) or checkpoints_in(Path(path)):
        raise DataError(
            "this is a run, not a text; give a text (train --from RUN starts from a run's weights)",
            Source(path).shown,
        )
    files = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            ending = os.path.splitext(name.lower().removesuffix(".gz"))[1]
            full = os.path.join(folder, name)
            if ending in ENDINGS and not name.startswith(".") and os.path.isfile(full):
                files.append(_file(full, os.stat(full), named=False))
    if not files:
        raise DataError(
            f"the folder contains no text; its files must end in {', '.join(ENDINGS)} (or these with .gz), "
            "or be named one by one",
            Source(path).shown,
        )
    return files


def _not_a_path(path: str) -> list[Source]:
    """Resolve a pattern or a corpus's name; anything else is a missing file."""
    if os.path.islink(path):
        raise DataError("this is a symbolic link to a file that does not exist", Source(path).shown)
    if any(character in path for character in "*?["):
        files = {
            os.path.realpath(name): name for name in sorted(glob.glob(path, recursive=True), reverse=True)
        }
        found = sorted(name for name in files.values() if os.path.isfile(name))  # links may form loops
        if not found:
            raise DataError("no file matches this pattern", Source(path).shown)
        return [_file(name, os.stat(name), named=False) for name in found]
    if (corpus := corpus_files(path)) is not None:
        return [_file(str(file), file.stat(), named=len(corpus) == 1) for file in corpus]
    raise DataError(f"there is no such file{_nearest(path)}", Source(path).shown)


def _nearest(path: str) -> str:
    """Suggest the neighbouring files and the corpora with the most similar names."""
    folder, name = os.path.split(path)
    try:
        beside = os.listdir(folder or ".")
    except OSError:
        beside = []
    near = [Source(os.path.join(folder, found)).shown for found in _close(name, beside)]
    near += _close(path, corpus_names())
    here = "" if os.path.isdir(folder or ".") else f", nor the folder '{Source(folder).shown}'"
    return here + ("; did you mean " + " or ".join(f"'{found}'" for found in near[:3]) + "?" if near else "")


def _close(name: str, names: Sequence[str]) -> list[str]:
    return difflib.get_close_matches(name, names, n=3, cutoff=0.6)


def _why(error: OSError | ValueError) -> str:
    """Describe a system error."""
    number = getattr(error, "errno", None)
    if number == errno.ELOOP:
        return "this is a loop of symbolic links; give the file itself"
    if number in (errno.EACCES, errno.EPERM):
        return "permission denied; make the file readable with chmod, or copy it"
    if number == errno.ENAMETOOLONG:
        return "the file name is too long; was a text given instead of a file?"
    return f"this cannot be read ({getattr(error, 'strerror', None) or error})"


def unreadable(error: OSError, source: Source) -> DataError:
    """Return the error for an existing file that cannot be opened."""
    return DataError(_why(error), source.shown)


def same_file(one: Sequence[Source], other: Sequence[Source]) -> str | None:
    """Return the first file in both lists: training text must not be used for validation."""
    seen = {Path(source.path).resolve() for source in one if source.path not in STDIN}
    both = [source for source in other if source.path not in STDIN and Path(source.path).resolve() in seen]
    return both[0].shown if both else None


PIECE = 1 << 20  # bytes per read
GZIP = b"\x1f\x8b"
# A gzip file that decompresses to more than this, and to more than BOMB_RATIO times its size, is a bomb.
BOMB_BYTES, BOMB_RATIO = 1 << 30, 200

_OTHER = {
    b"PK\x03\x04": ("a ZIP archive (or an office document)", "unpack it or save it as plain text"),
    b"BZh": ("a bzip2 archive", "unpack it with bunzip2"),
    b"\xfd7zXZ\x00": ("an xz archive", "unpack it with unxz"),
    b"\x28\xb5\x2f\xfd": ("a zstd archive", "unpack it with unzstd"),
    b"%PDF-": ("a PDF document", "extract its text first"),
    b"PAR1": ("a Parquet table", "use --set data.format=parquet or rename it to .parquet"),
}


def open_binary(source: Source) -> IO[bytes]:
    """Open the file for reading."""
    if source.path in STDIN:
        return sys.stdin.buffer
    try:
        return open(source.path, "rb")
    except OSError as error:
        raise unreadable(error, source) from error


def read_bytes(source: Source) -> Iterator[bytes]:
    """Yield the file's bytes in pieces, decompressed."""
    file = open_binary(source)
    try:
        head = _read(file, source)
        if head[:2] == GZIP:
            yield from _unpack(file, head, source)
            return
        for magic, (kind, advice) in _OTHER.items():
            if head.startswith(magic):
                raise DataError(f"this is {kind}, not text; {advice}", source.shown)
        while head:
            yield head
            head = _read(file, source)
    finally:
        if source.path not in STDIN:
            file.close()


def _read(file: IO[bytes], source: Source) -> bytes:
    try:
        return file.read(PIECE)
    except OSError as error:
        raise unreadable(error, source) from error


def _unpack(file: IO[bytes], data: bytes, source: Source) -> Iterator[bytes]:
    """Decompress the members of a gzip file one after the other; each is verified by its checksum."""
    read, made = len(data), 0
    unpacker = zlib.decompressobj(wbits=31)
    while True:
        try:
            out = unpacker.decompress(data, PIECE * 4)
        except zlib.error as error:
            message = f"the gzip file is damaged near byte {read - len(data):,} ({error}); download it again"
            raise DataError(message, source.shown) from error
        made += len(out)
        if made > BOMB_BYTES and made > BOMB_RATIO * read:
            raise DataError(
                f"the gzip file grows to more than {BOMB_RATIO} times its size ({made:,} bytes so far), "
                "which looks like a decompression bomb; decompress it yourself if you trust it",
                source.shown,
            )
        if out:
            yield out
        data = unpacker.unconsumed_tail
        if unpacker.eof:
            data = unpacker.unused_data.lstrip(b"\0") or _read(file, source).lstrip(b"\0")
            if not data:
                return
            read += 0 if unpacker.unused_data else len(data)
            unpacker = zlib.decompressobj(wbits=31)
        elif not data:
            data = _read(file, source)
            read += len(data)
            if not data:
                raise DataError(
                    f"the gzip file is cut off after byte {read:,}; download it again", source.shown
                )

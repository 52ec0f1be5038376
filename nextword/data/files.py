"""Read the bytes of a file, decompressed if it is gzip, whatever its name.

A truncated download, a damaged archive and a decompression bomb are errors, never half a text.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from typing import IO

from nextword.core.errors import DataError
from nextword.data.paths import STDIN, Source, unreadable

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

"""Gzip with bounds: reading stops at a bomb, writing uses several cores and still makes one plain member."""

from __future__ import annotations

import os
import zlib

from nextword.core.errors import FormatError

MAGIC = b"\x1f\x8b"
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # no name, no time: the same model gives the same bytes
_LEVEL = 6
_BOMB_RATIO, _BOMB_SIZE = 200, 1 << 30
_CHUNK = 4 << 20


def gunzip(data: bytes | memoryview, path: str | os.PathLike[str]) -> bytes:
    """Unpack all members of a gzip file; truncation, damage and bombs are errors that name the byte."""
    view, pieces, size, at = memoryview(data), [], 0, 0
    while at < len(view):
        if bytes(view[at : at + 2]) != MAGIC:
            if at and not bytes(view[at:]).strip(b"\0"):
                break  # zeros after the last member are padding
            raise FormatError(f"the gzip file holds other bytes from {at:,} on; compress it again", path)
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if at >= len(view) and not member.unconsumed_tail:
                raise FormatError(f"the gzip file is cut off at byte {at:,}; copy it again", path)
            source = member.unconsumed_tail or view[at : at + _CHUNK]
            at += 0 if member.unconsumed_tail else len(source)
            try:
                pieces.append(member.decompress(source, _CHUNK * 4))
            except zlib.error as error:
                message = f"the gzip file is damaged near byte {at:,} ({error}); copy it again"
                raise FormatError(message, path) from error
            size += len(pieces[-1])
            if size > _BOMB_SIZE and size > _BOMB_RATIO * len(view):
                raise FormatError(
                    f"the gzip file of {len(view):,} bytes unpacks to more than {size:,}; unpack it by hand "
                    "if you trust it",
                    path,
                )
        at -= len(member.unused_data)
    return b"".join(pieces)


class GzipJoiner:
    """One gzip member from pieces that were compressed independently (`squeeze`), in any thread."""

    def __init__(self) -> None:
        self.check, self.size, self.header = 0, 0, _HEADER

    @staticmethod
    def squeeze(piece: memoryview) -> bytes:
        """Compress a piece to deflate blocks that end at a byte; the next piece can follow."""
        engine = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
        return engine.compress(piece) + engine.flush(zlib.Z_SYNC_FLUSH)

    def count(self, piece: memoryview) -> None:
        """Take a piece, in order, into the checksum."""
        self.check = zlib.crc32(piece, self.check)
        self.size += len(piece)

    def trailer(self) -> bytes:
        """Return the last block, checksum and size."""
        last = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15).flush(zlib.Z_FINISH)
        return last + self.check.to_bytes(4, "little") + (self.size & 0xFFFFFFFF).to_bytes(4, "little")

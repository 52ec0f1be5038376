"""The tokenizer ``bytes``: 256 tokens, no unknown ones, and a lossless code for any file.

The smallest vocabulary that can encode everything; a document is one sequence, a newline is a byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from nextword.core.contracts import END, SPECIALS, Block, Decoder, Encoded, Unit
from nextword.text.detokenize import ByteDecoder
from nextword.text.normalize import Normalizer, to_bytes
from nextword.text.sequences import Piece, PlainJoiner, file_sequences, pack, pieces
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import Fields, write_json

Array = np.ndarray[Any, np.dtype[Any]]
FIRST_BYTE = 3


class ByteTokenizer:
    """Byte b is id b + 3."""

    name = "bytes"
    vocab_size = FIRST_BYTE + 256
    closed = True

    def __init__(self, unit: Unit = "document", normalizer: Normalizer | None = None) -> None:
        self.unit: Unit = unit
        self.normalizer = normalizer or Normalizer()
        self.lossless = not self.normalizer.changes

    @classmethod
    def fit(cls, blocks: Iterable[Block], settings: TextSettings, unit: Unit = "document") -> ByteTokenizer:
        """Return the tokenizer; there is nothing to learn, so the blocks are not read."""
        return cls(unit, Normalizer(settings.normalize, settings.lowercase))

    def encode(self, text: str) -> Array:
        """Return the bytes of a text."""
        return _ids(self.normalizer.data(to_bytes(text)))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of bytes; invalid UTF-8 becomes U+FFFD."""
        return bytes(int(i) - FIRST_BYTE for i in ids if i >= FIRST_BYTE).decode("utf-8", "replace")

    def piece(self, index: int) -> str:
        """Return a printable ASCII character as is, any other byte as ``\\xNN``."""
        if index < FIRST_BYTE:
            return SPECIALS[index]
        byte = index - FIRST_BYTE
        return chr(byte) if 32 <= byte < 127 and byte != ord("\\") else f"\\x{byte:02x}"

    def data(self, index: int) -> bytes:
        """Return the byte of an id; a special token has none."""
        return _data(index)

    def decoder(self) -> Decoder:
        """Return an incremental decoder that never emits part of a character."""
        return ByteDecoder(_data)

    def encode_blocks(self, blocks: Iterable[Block], costs: bool = False) -> Iterator[Encoded]:
        """Yield the ids of a stream of text; there are no side costs."""
        for batch in pieces(blocks, self.unit):
            yield pack(batch, self._piece_ids, self.unit)

    def _piece_ids(self, batch: list[Piece]) -> list[Array]:
        return [_ids(self.normalizer.data(piece.data)) for piece in batch]

    def can_code(self, data: bytes) -> bool:
        """Return True: any bytes can be encoded."""
        return self.lossless

    def split(self, data: bytes) -> Iterator[tuple[int, tuple[()]]]:
        """Yield every token id of a file (END included, START not); there are no side symbols."""
        for sequence in file_sequences(data, self.unit):
            for byte in sequence:
                yield FIRST_BYTE + byte, ()
            yield END, ()

    def joiner(self) -> PlainJoiner:
        """Return the inverse of `split`; the bytes are cut to the length of the file."""
        return PlainJoiner(_data, self.unit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``tokenizer.json``."""
        write_json(path, {"name": self.name, "unit": self.unit, **self.normalizer.to_json()})

    @classmethod
    def from_json(cls, fields: Fields) -> ByteTokenizer:
        """Read and check what `save` wrote."""
        return cls(fields.unit(), Normalizer.from_json(fields))


def _ids(data: bytes) -> Array:
    return np.frombuffer(data, np.uint8).astype(np.int32) + np.int32(FIRST_BYTE)


def _data(index: int) -> bytes:
    return bytes((index - FIRST_BYTE,)) if index >= FIRST_BYTE else b""

"""The tokenizer ``characters``: every Unicode character of the training text is a token.

An unseen character is UNKNOWN and, in the lossless code, spelled by its UTF-8 bytes.
[NJU "Char-RNN"; the lectures' character models]
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from nextword.core.contracts import END, SPECIALS, START, UNKNOWN, Block, Decoder, Encoded, Unit
from nextword.core.errors import FormatError
from nextword.text.detokenize import JoinedDecoder
from nextword.text.learn import limit
from nextword.text.normalize import Normalizer, is_text, to_bytes
from nextword.text.sequences import Piece, file_sequences, pack, pieces
from nextword.text.settings import TextSettings
from nextword.text.side import SideSymbols
from nextword.text.speller import Speller
from nextword.text.tokenizers import Fields, write_json

Array = np.ndarray[Any, np.dtype[Any]]
FIRST_CHARACTER = 3
_CODES = 0x110000


class CharacterTokenizer:
    """Characters with the ids 3, 4, … in order of first occurrence."""

    name = "characters"
    closed = False

    def __init__(
        self, characters: str, unit: Unit = "document", normalizer: Normalizer | None = None
    ) -> None:
        self.characters = characters
        self.unit: Unit = unit
        self.normalizer = normalizer or Normalizer()
        self.lossless = not self.normalizer.changes
        self.vocab_size = FIRST_CHARACTER + len(characters)

    @classmethod
    def fit(
        cls, blocks: Iterable[Block], settings: TextSettings, unit: Unit = "document"
    ) -> CharacterTokenizer:
        """Collect the characters of a text."""
        normalizer = Normalizer(settings.normalize, settings.lowercase)
        counts = np.zeros(_CODES, np.int64)
        first_seen: dict[int, None] = {}
        for batch in pieces(blocks, unit):
            for piece in batch:
                _learn(_codes(normalizer.data(piece.data)), counts, first_seen)
        listed = np.array(list(first_seen), np.int64)
        padded = np.concatenate((np.zeros(FIRST_CHARACTER, np.int64), counts[listed]))
        _, kept = limit(padded, settings.min_count, settings.max_vocab)
        return cls("".join(map(chr, listed[kept - FIRST_CHARACTER].tolist())), unit, normalizer)

    @cached_property
    def _table(self) -> Array:
        """Array from code point to id."""
        table = np.zeros(_CODES, np.int32)
        table[[ord(c) for c in self.characters]] = np.arange(FIRST_CHARACTER, self.vocab_size)
        return table

    @cached_property
    def _speller(self) -> Speller:
        return Speller([c.encode("utf-8") for c in self.characters])

    def encode(self, text: str) -> Array:
        """Return the ids of the characters of a text."""
        return self._ids(self.normalizer.data(to_bytes(text)))

    def _ids(self, data: bytes) -> Array:
        found: Array = self._table[_codes(data)]
        return found

    def decode(self, ids: Iterable[int]) -> str:
        """Return the characters joined; unknown ones become U+FFFD."""
        return "".join(self._text(int(i)) for i in ids if i not in (START, END))

    def _text(self, index: int) -> str:
        return self.characters[index - FIRST_CHARACTER] if index >= FIRST_CHARACTER else "\ufffd"

    def piece(self, index: int) -> str:
        """Return the character of an id."""
        return self._text(index) if index >= FIRST_CHARACTER else SPECIALS[index]

    def data(self, index: int) -> bytes:
        """Return the UTF-8 bytes of a character, of U+FFFD for an unknown one; START and END have none."""
        return b"" if index in (START, END) else self._text(index).encode("utf-8")

    def decoder(self) -> Decoder:
        """Return an incremental decoder."""
        return JoinedDecoder(self._text, "")

    def encode_blocks(self, blocks: Iterable[Block], costs: bool = False) -> Iterator[Encoded]:
        """Yield the ids of a stream of text; ``costs`` adds the spelling of unknown characters."""
        known: dict[int, float] = {}
        for batch in pieces(blocks, self.unit):
            found = pack(batch, self._piece_ids, self.unit)
            if costs and found.unknown:
                found = replace(found, side_nats=sum(self._cost(piece.data, known) for piece in batch))
            yield found

    def _piece_ids(self, batch: list[Piece]) -> list[Array]:
        return [self._ids(self.normalizer.data(piece.data)) for piece in batch]

    def _cost(self, data: bytes, known: dict[int, float]) -> float:
        """Return the nats of the unknown characters of a piece."""
        codes = _codes(self.normalizer.data(data))
        total = 0.0
        for code, count in zip(
            *np.unique(codes[self._table[codes] == UNKNOWN], return_counts=True), strict=True
        ):
            if code not in known:
                known[int(code)] = -sum(float(np.log(p[i])) for p, i in self._symbols(chr(code)))
            total += int(count) * known[int(code)]
        return total

    def _symbols(self, character: str) -> SideSymbols:
        """Return the bytes of a character; its first byte implies their number, so no end is coded."""
        return self._speller.symbols(character.encode("utf-8"))[:-1]

    def can_code(self, data: bytes) -> bool:
        """Return whether `split` can encode these bytes: UTF-8 without NUL, with no lossy normalization."""
        return self.lossless and is_text(data)

    def split(self, data: bytes) -> Iterator[tuple[int, SideSymbols]]:
        """Yield the token ids of a file (END included, START not) with the spelling of unknown characters."""
        for sequence in file_sequences(data, self.unit):
            text = sequence.decode("utf-8")
            for index, character in zip(self._ids(sequence).tolist(), text, strict=True):
                yield index, self._symbols(character) if index == UNKNOWN else ()
            yield END, ()

    def joiner(self) -> CharacterJoiner:
        """Return the inverse of `split`; the bytes are cut to the length of the file."""
        return CharacterJoiner(self.characters, self._speller, self.unit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``tokenizer.json``."""
        values = {
            "name": self.name,
            "unit": self.unit,
            **self.normalizer.to_json(),
            "characters": self.characters,
        }
        write_json(path, values)

    @classmethod
    def from_json(cls, fields: Fields) -> CharacterTokenizer:
        """Read and check what `save` wrote."""
        characters = fields.text("characters")
        fields.utf8(characters)
        if len(set(characters)) != len(characters):
            raise FormatError("a character is listed twice; train the tokenizer again", fields.path)
        return cls(characters, fields.unit(), Normalizer.from_json(fields))


class CharacterJoiner:
    """Turns tokens and the bytes of unknown characters back into the bytes of a file."""

    def __init__(self, characters: str, speller: Speller, unit: Unit) -> None:
        self._data = [c.encode("utf-8") for c in characters]
        self._speller, self._end = speller, b"\n" if unit == "line" else b""

    def begin(self) -> None:
        """Start a new file; there is no state to reset."""

    def push(self, index: int) -> Generator[Array, int, bytes]:
        """Return the bytes of one token, asking for the bytes of an unknown character."""
        if index == END:
            return self._end
        if index >= FIRST_CHARACTER:
            return self._data[index - FIRST_CHARACTER]
        asking, found = self._speller.ask(), bytearray()
        found.append((yield next(asking)))
        for _ in range((found[0] >= 0xC0) + (found[0] >= 0xE0) + (found[0] >= 0xF0)):
            found.append((yield asking.send(found[-1])))
        return bytes(found)


def _codes(data: bytes) -> Array:
    """Return the code points of UTF-8 bytes."""
    if data.isascii():
        return np.frombuffer(data, np.uint8)
    return np.frombuffer(data.decode("utf-8").encode("utf-32-le"), np.uint32)


def _learn(codes: Array, counts: Array, first_seen: dict[int, None]) -> None:
    """Count code points and record new ones in order of occurrence."""
    found = np.bincount(codes, minlength=1)
    new = np.flatnonzero((found > 0) & (counts[: len(found)] == 0))
    if len(new):
        is_new = np.zeros(_CODES, bool)
        is_new[new] = True
        order = codes[is_new[codes]]
        _, first = np.unique(order, return_index=True)
        first_seen.update(dict.fromkeys(order[np.sort(first)].tolist()))
    counts[: len(found)] += found

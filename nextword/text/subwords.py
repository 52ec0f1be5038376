"""The tokenizers ``bpe`` and ``unigram``: subwords learned from the text by the tokenizers library.

Byte pair encoding (Sennrich et al. 2016) and the unigram model (Kudo 2018), both over bytes in GPT-2's
notation: all 256 bytes are in the vocabulary and nothing is normalized, so every text is restored exactly.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from nextword.core.contracts import END, SPECIALS, Block, Decoder, Encoded, Unit
from nextword.core.errors import DataError, FormatError
from nextword.text.detokenize import ByteDecoder
from nextword.text.normalize import Normalizer, is_text, to_bytes
from nextword.text.patterns import PATTERNS, Pattern
from nextword.text.sequences import Piece, PlainJoiner, file_sequences, pack, parts, text_pieces
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import Fields, write_json

Array = np.ndarray[Any, np.dtype[Any]]
FIRST_PIECE = 3
SMALLEST, LARGEST = 512, 32_768  # bounds of the size chosen from the size of the text
_ALPHABET = 256
_SHORT = 1 << 14  # characters of a text that is encoded by itself
_BATCH = 1 << 20  # bytes passed to the library at a time


class SubwordTokenizer:
    """Subwords with the ids 3, 4, … in the library's order."""

    closed = True
    cached = True  # encoding costs more than reading cached ids

    def __init__(
        self,
        model: dict[str, Any],
        unit: Unit = "document",
        normalizer: Normalizer | None = None,
        pattern: str = "qwen2",
    ) -> None:
        """Take ``model``: type, vocabulary and merges or scores, as the library writes them."""
        self._model = model
        self.pattern, self._pattern = pattern, PATTERNS[pattern]
        self.name = "bpe" if model["type"] == "BPE" else "unigram"
        self.unit: Unit = unit
        self.normalizer = normalizer or Normalizer()
        self.lossless = not self.normalizer.changes
        self.vocab_size = FIRST_PIECE + len(model["vocab"])

    @classmethod
    def fit(
        cls, blocks: Iterable[Block], settings: TextSettings, unit: Unit = "document"
    ) -> SubwordTokenizer:
        """Learn the subwords from the start of a text; ``settings.tokenizer`` is bpe or unigram."""
        normalizer = Normalizer(settings.normalize, settings.lowercase)
        texts: list[str] = []
        size = 0
        for piece in text_pieces(blocks, unit, PATTERNS[settings.pattern]):
            texts.append(normalizer.data(piece.data).decode("utf-8"))
            size += len(piece.data)
            if size >= settings.fit_bytes:
                break
        wanted = settings.size or default_size(size)
        model = _learn(settings, texts, max(wanted - FIRST_PIECE, _ALPHABET))
        return cls(model, unit, normalizer, settings.pattern)

    @cached_property
    def _library(self) -> Any:
        """The library's tokenizer, created when first needed."""
        return _build(self._model, self._pattern)

    @cached_property
    def _names(self) -> list[str]:
        vocab = self._model["vocab"]
        if self.name == "bpe":
            return sorted(vocab, key=vocab.__getitem__)
        return [name for name, _ in vocab]

    @cached_property
    def _bytes(self) -> list[bytes]:
        """The bytes of every subword."""
        byte_of = {character: byte for byte, character in enumerate(byte_characters())}
        return [bytes(byte_of[character] for character in name) for name in self._names]

    def encode(self, text: str) -> Array:
        """Return the ids of a text."""
        return self._ids([Piece(part, False, False, 0, 0) for part in parts(to_bytes(text), self._pattern)])

    def _ids(self, batch: list[Piece]) -> Array:
        found = self._piece_ids(batch)
        return np.concatenate(found) if found else np.zeros(0, np.int32)

    def _piece_ids(self, batch: list[Piece]) -> list[Array]:
        texts = [self.normalizer.data(piece.data).decode("utf-8") for piece in batch]
        if len(texts) == 1 and len(texts[0]) < _SHORT:  # without a word to the library's other threads
            found = [self._library.encode(texts[0], add_special_tokens=False)]
        else:
            found = self._library.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(one.ids, np.int32) + np.int32(FIRST_PIECE) for one in found]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of subwords; invalid UTF-8 becomes U+FFFD."""
        return b"".join(map(self._data, map(int, ids))).decode("utf-8", "replace")

    def _data(self, index: int) -> bytes:
        return self._bytes[index - FIRST_PIECE] if index >= FIRST_PIECE else b""

    def piece(self, index: int) -> str:
        """Return the text of a subword; invalid UTF-8 as ``\\xNN``."""
        if index < FIRST_PIECE:
            return SPECIALS[index]
        return self._data(index).decode("utf-8", "backslashreplace")

    def data(self, index: int) -> bytes:
        """Return the bytes of a subword; a special token has none."""
        return self._data(index)

    def decoder(self) -> Decoder:
        """Return an incremental decoder that never emits part of a character."""
        return ByteDecoder(self._data)

    def encode_blocks(self, blocks: Iterable[Block], costs: bool = False) -> Iterator[Encoded]:
        """Yield the ids of a stream of text; there are no side costs."""
        batch: list[Piece] = []
        size = 0
        for piece in text_pieces(blocks, self.unit, self._pattern):
            batch.append(piece)
            size += len(piece.data) + 16
            if size >= _BATCH:
                yield pack(batch, self._piece_ids, self.unit)
                batch, size = [], 0
        if batch:
            yield pack(batch, self._piece_ids, self.unit)

    def can_code(self, data: bytes) -> bool:
        """Return whether `split` can encode these bytes: UTF-8 without NUL, with no lossy normalization."""
        return self.lossless and is_text(data)

    def split(self, data: bytes) -> Iterator[tuple[int, tuple[()]]]:
        """Yield every token id of a file (END included, START not); there are no side symbols."""
        for sequence in file_sequences(data, self.unit):
            waiting = iter(parts(sequence, self._pattern))
            while batch := list(islice(waiting, 1024)):
                for index in self._ids([Piece(part, False, False, 0, 0) for part in batch]).tolist():
                    yield index, ()
            yield END, ()

    def joiner(self) -> PlainJoiner:
        """Return the inverse of `split`; the bytes are cut to the length of the file."""
        return PlainJoiner(self._data, self.unit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``tokenizer.json``."""
        about = {"name": self.name, "unit": self.unit, **self.normalizer.to_json()}
        write_json(path, {**about, "pattern": self.pattern, "model": self._model})

    @classmethod
    def from_json(cls, fields: Fields) -> SubwordTokenizer:
        """Read and check what `save` wrote."""
        try:
            model = checked_model(fields.values["model"], fields.text("name", ("bpe", "unigram")))
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(
                f"the tokenizer's subwords are damaged ({error}); train it again", fields.path
            ) from error
        pattern = fields.text("pattern", tuple(PATTERNS)) if "pattern" in fields.values else "gpt2"
        tokenizer = cls(model, fields.unit(), Normalizer.from_json(fields), pattern)
        try:
            _ = tokenizer._library
        except BaseException as error:  # the library is Rust: its panics are not Exceptions
            if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
                raise
            raise FormatError(f"the tokenizer's subwords are inconsistent ({error})", fields.path) from error
        return tokenizer


def default_size(size: int) -> int:
    """Return the vocabulary size for a text of this many bytes: twice the square root, a multiple of 64."""
    return min(LARGEST, max(SMALLEST, round(2 * math.sqrt(size) / 64) * 64))


def byte_characters() -> list[str]:
    """Return the character that stands for each byte: itself if it is visible, else one from U+0100 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in seen else chr(next(hidden)) for byte in range(256)]


def _splitter(pattern: Pattern) -> Any:
    """Return the library's object that splits a text and writes bytes as characters."""
    from tokenizers import Regex, pre_tokenizers

    if pattern.regex is None:
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern.regex), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip


def _build(model: dict[str, Any], pattern: Pattern) -> Any:
    from tokenizers import Tokenizer, models

    made: Any
    if model["type"] == "BPE":
        made = models.BPE(vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]])
    else:
        made = models.Unigram(vocab=[tuple(pair) for pair in model["vocab"]])
    tokenizer = Tokenizer(made)
    tokenizer.pre_tokenizer = _splitter(pattern)
    return tokenizer


def _learn(settings: TextSettings, texts: list[str], size: int) -> dict[str, Any]:
    """Train the library's model of this name and return its vocabulary."""
    from tokenizers import Tokenizer, models, trainers

    name = settings.tokenizer
    kinds = {"bpe": (models.BPE, trainers.BpeTrainer), "unigram": (models.Unigram, trainers.UnigramTrainer)}
    make, train = kinds[name]
    tokenizer = Tokenizer(make())
    tokenizer.pre_tokenizer = _splitter(PATTERNS[settings.pattern])
    trainer = train(
        vocab_size=size, initial_alphabet=byte_characters(), special_tokens=[], show_progress=False
    )
    try:
        tokenizer.train_from_iterator(texts, trainer, length=len(texts))
        model: dict[str, Any] = json.loads(tokenizer.to_str())["model"]
    except BaseException as error:  # the library is Rust: its panics are not Exceptions
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise DataError(
            f"the tokenizer '{name}' cannot be trained on this text ({error}); use --tokenizer bytes"
        ) from error
    if name == "bpe":
        return {key: model[key] for key in ("type", "vocab", "merges")}
    if not all(isinstance(score, float) for _, score in model["vocab"]):
        raise DataError("the text is too short to train the tokenizer 'unigram'; use --tokenizer bytes")
    return {"type": "Unigram", "vocab": _in_order(model["vocab"])}


def _in_order(vocab: list[tuple[str, float]]) -> list[list[Any]]:
    """Return the unigram subwords in a fixed order; the library's own changes from run to run.

    The library sums in varying order, which shows in the last digits, and gives unused bytes the lowest
    scores in random order; here these are sorted by byte.
    """
    scores = {piece: round(score, 6) for piece, score in vocab}
    least = min((score for piece, score in scores.items() if len(piece) > 1), default=0.0)
    rare = [piece for piece in byte_characters() if scores[piece] < least]
    scores.update(zip(rare, sorted((scores[piece] for piece in rare), reverse=True), strict=True))
    return [[piece, scores[piece]] for piece in sorted(scores, key=lambda piece: (-scores[piece], piece))]


def checked_model(model: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the model of a file after checking everything in it; raise ValueError and the like."""
    if model["type"] != {"bpe": "BPE", "unigram": "Unigram"}[name]:
        raise ValueError(f"it is a {model['type']!r} model")
    alphabet = set(byte_characters())
    if name == "bpe":
        names, merges = model["vocab"], model["merges"]
        ids = sorted(names.values())
        if ids != list(range(len(ids))) or any(isinstance(i, bool) for i in ids):
            raise ValueError("the ids are not 0, 1, 2, …")
        for first, second in merges:
            if first not in names or second not in names or first + second not in names:
                raise ValueError(f"the merge of {first!r} and {second!r} is not in the vocabulary")
    else:
        names = dict(model["vocab"])
        if len(names) != len(model["vocab"]):
            raise ValueError("a subword is listed twice")
        if not all(isinstance(score, float | int) and math.isfinite(score) for score in names.values()):
            raise ValueError("a score is not a number")
    if not all(isinstance(piece, str) and piece and set(piece) <= alphabet for piece in names):
        raise ValueError("a subword is not made of bytes")
    if not alphabet <= set(names):
        raise ValueError("a byte is missing")
    return model

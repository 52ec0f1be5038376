"""A compressor that codes a file with a model and restores it: the test of bits per byte.

A model that predicts well compresses well; the file's size is bits per byte times its bytes, up to a header.
What a tokenizer cannot code, or what a model would make longer, is stored as it is.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.core.contracts import END, START, Carrier, LanguageModel, State, Tokenizer, deterministic
from nextword.core.errors import ContextError, FormatError
from nextword.core.events import Done, Event, Progress, Stage, result_of
from nextword.evaluation.compress.coder import IntegerDistribution, RangeDecoder, RangeEncoder
from nextword.models.distributions import as_numpy

MAGIC = b"NWZ\x01"  # three letters and the version of the format
RAW, CODED = 0, 1
EVERY = 1024  # tokens between two events
# MAGIC 4 | mode 1 | run 16 | check of the data 8 | check of this file 4 | length 8 | payload
HEADER = 41


def compress(model: LanguageModel, tokenizer: Tokenizer, data: bytes, run_hash: str) -> bytes:
    """Return the compressed file; `run_hash` (SHA-256 of the run, hexadecimal) names the run it needs."""
    return bytes(result_of(compressing(model, tokenizer, data, run_hash)))


def decompress(
    model: LanguageModel, tokenizer: Tokenizer, data: bytes, run_hash: str, source: str = ""
) -> bytes:
    """Return the original bytes; FormatError if it is damaged or of another run (`source`: its name)."""
    return bytes(result_of(decompressing(model, tokenizer, data, run_hash, source)))


def compressing(model: LanguageModel, tokenizer: Tokenizer, data: bytes, run_hash: str) -> Iterator[Event]:
    """Run `compress` with its progress in bytes; the last event holds the compressed file."""
    yield Stage("compress", len(data), "bytes")
    payload: bytes | None = None
    if data and _can_code(tokenizer, data):
        with deterministic(model):
            payload = yield from _encode(model, tokenizer, data)
    mode = CODED if payload is not None and len(payload) < len(data) else RAW
    body = payload if mode == CODED and payload is not None else data
    head = bytes([mode]) + _key(run_hash) + hashlib.sha256(data).digest()[:8]
    length = len(data).to_bytes(8, "little")
    check = zlib.crc32(head + length + body).to_bytes(4, "little")
    yield Done(MAGIC + head + check + length + body)


def decompressing(
    model: LanguageModel, tokenizer: Tokenizer, data: bytes, run_hash: str, source: str = ""
) -> Iterator[Event]:
    """Run `decompress` with its progress in bytes; the last event holds the original file."""
    header = _read_header(data, run_hash, source)
    yield Stage("decompress", header.length, "bytes")
    if header.mode == RAW:
        found = header.payload
    else:
        try:
            with deterministic(model):
                found = yield from _decode(model, tokenizer, header)
        except (ValueError, IndexError, KeyError, OverflowError, AssertionError) as error:
            raise FormatError(_DAMAGED, source or None) from error
    if hashlib.sha256(found).digest()[:8] != header.check:
        raise FormatError(
            "the decompressed text is not the one that was compressed (its checksum differs); "
            "the file is damaged, or was made by another version or on another kind of machine",
            source or None,
        )
    yield Done(found)


_DAMAGED = "the compressed file is damaged: its contents do not match its checksum; make or copy it again"


@dataclass(frozen=True)
class _Header:
    mode: int
    check: bytes
    length: int
    payload: bytes


def _read_header(data: bytes, run_hash: str, source: str) -> _Header:
    """Check everything that can be checked before anything is decoded."""
    place = source or None
    if data[:3] != MAGIC[:3]:
        raise FormatError("this is not a file compressed by nextword (it does not begin with NWZ)", place)
    if data[3:4] != MAGIC[3:]:
        found = data[3] if len(data) > 3 else "missing"
        raise FormatError(f"the format version is {found}, this nextword reads {MAGIC[3]}; update it", place)
    if len(data) < HEADER:
        raise FormatError(f"the compressed file has {len(data)} bytes and is cut off; copy it again", place)
    head, check, length, payload = data[4:29], data[29:33], data[33:41], data[41:]
    if zlib.crc32(head + length + payload).to_bytes(4, "little") != check:
        raise FormatError(_DAMAGED, place)
    if head[1:17] != _key(run_hash):
        raise FormatError(
            f"the file was compressed with the run {head[1:17].hex()}, and this run is "
            f"{_key(run_hash).hex()}; decompress it with the run that made it",
            place,
        )
    header = _Header(head[0], head[17:25], int.from_bytes(length, "little"), payload)
    stored_badly = header.mode == RAW and header.length != len(payload)
    if header.mode not in (RAW, CODED) or stored_badly or (header.mode == CODED and len(payload) % 4):
        raise FormatError(_DAMAGED, place)
    return header


def _key(run_hash: str) -> bytes:
    """Return the first 16 bytes of the run's hash; any other name of a run is hashed first."""
    try:
        key = bytes.fromhex(run_hash)
    except ValueError:
        key = b""
    return key[:16] if len(key) >= 16 else hashlib.sha256(run_hash.encode()).digest()[:16]


def _can_code(tokenizer: Any, data: bytes) -> bool:
    return bool(tokenizer.lossless and tokenizer.can_code(data))


class _Predictor:
    """The distribution of the next token, one sequence after another; both sides run exactly this."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.beginning: tuple[State, IntegerDistribution] | None = None  # of every sequence: computed once
        self.begin()

    def begin(self) -> None:
        """Start a new sequence."""
        if self.beginning is None:
            state = self.model.start(1)
            self.beginning = state, self._weights(state)
        self.state, self.weights = self.beginning

    def read(self, word: int) -> None:
        """Read the next token, now that it is known; END starts a new sequence."""
        if word == END:
            self._end()
            return
        ids = np.array([word])
        try:
            logp, self.state = self.model.step(ids, self.state)
            self.weights = IntegerDistribution(as_numpy(logp, np.float64)[0])
        except ContextError:
            self.state = self.model.score(ids[:, None], np.array([1]), self.state)[1]
            self.weights = self._any_word()

    def _end(self) -> None:
        """Start the next sequence of the file, from the state so far if the model carries it over."""
        if not isinstance(self.model, Carrier):
            self.begin()
            return
        _, state = self.model.score(np.array([[END]]), np.array([1]), self.state)
        self.state = self.model.carry(state)
        self.weights = self._weights(self.state)

    def _weights(self, state: State) -> IntegerDistribution:
        try:
            return IntegerDistribution(as_numpy(self.model.next(state), np.float64)[0])
        except ContextError:
            return self._any_word()

    def _any_word(self) -> IntegerDistribution:
        """Return a uniform distribution where a model has none (mle in an unseen context)."""
        return IntegerDistribution(np.full(self.model.vocab_size, -np.inf))


def _encode(model: LanguageModel, tokenizer: Any, data: bytes) -> Generator[Event, None, bytes]:
    predictor, encoder = _Predictor(model), RangeEncoder()
    for count, (word, side) in enumerate(tokenizer.split(data), start=1):
        encoder.word(predictor.weights, word)
        for probabilities, symbol in side:
            encoder.symbol(probabilities, symbol)
        predictor.read(word)
        if count % EVERY == 0:
            yield Progress(count)
    return encoder.finish()


def _decode(model: LanguageModel, tokenizer: Any, header: _Header) -> Generator[Event, None, bytes]:
    predictor, decoder, joiner = _Predictor(model), RangeDecoder(header.payload), tokenizer.joiner()
    joiner.begin()
    found = bytearray()
    count = patience = 0
    while len(found) < header.length:
        word = decoder.word(predictor.weights)
        before = len(found)
        found += _joined(joiner.push(word), decoder, header.length + 1)
        predictor.read(word)
        count += 1
        patience = 0 if len(found) > before else patience + 1
        if word == START or patience > EVERY:
            raise ValueError("tokens that cannot stand there")
        if count % EVERY == 0:
            yield Progress(len(found))
    return bytes(found[: header.length])


def _joined(asking: Generator[Any, int, bytes], decoder: RangeDecoder, most: int) -> bytes:
    """Answer the joiner's questions until it returns the bytes of the token."""
    try:
        probabilities = next(asking)
        for _ in range(most + 16):
            probabilities = asking.send(decoder.symbol(probabilities))
    except StopIteration as stop:
        return bytes(stop.value)
    raise ValueError("a token longer than the file")

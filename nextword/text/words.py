"""The tokenizer ``words``: whatever stands between ASCII white space, one line a sequence.

The lectures' tokens; with the speller and the gaps it is also a code for the whole file.
[IITD-1 "Language Modelling"; XMU "Recap: next token prediction and auto-regressive models"]
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nextword.core.contracts import END, START, UNKNOWN, Block, Decoder, Encoded, Unit
from nextword.core.errors import FormatError
from nextword.text.chunks import Chunk, word_chunks
from nextword.text.detokenize import JoinedDecoder
from nextword.text.files import Fields, write_json
from nextword.text.gaps import GapModel
from nextword.text.normalize import Normalizer, is_text, to_bytes
from nextword.text.scan import Scanned, Scanner
from nextword.text.settings import TextSettings
from nextword.text.side import Side, SideSymbols, WordJoiner, split_words
from nextword.text.speller import Speller
from nextword.text.vocab import Vocabulary, are_words

if TYPE_CHECKING:
    from nextword.text.learn import FitEncode

Array = np.ndarray[Any, np.dtype[Any]]
# Spellings of unknown words that are remembered while a text is measured.
_REMEMBERED = 1_000_000


class WordTokenizer:
    """White-space words with a closed vocabulary, a speller for unknown words and a model of the gaps."""

    name = "words"
    unit: Unit
    closed = False

    def __init__(
        self,
        vocab: Vocabulary,
        unit: Unit = "line",
        gaps: GapModel | None = None,
        normalizer: Normalizer | None = None,
        literal: tuple[int, int] = (0, 0),
    ) -> None:
        """``literal``: how many unknown tokens of the training text were ``<unk>`` itself, and others."""
        self.vocab, self.unit, self.literal = vocab, unit, literal
        self.gaps = gaps or GapModel.default()
        self.normalizer = normalizer or Normalizer()
        self.vocab_size, self.lossless = len(vocab), not self.normalizer.changes

    @classmethod
    def from_words(
        cls, words: Iterable[str], settings: TextSettings | None = None, unit: Unit = "line"
    ) -> WordTokenizer:
        """A tokenizer for a given list of words; their ids are 3, 4, … in this order."""
        settings = settings or TextSettings()
        normalizer = Normalizer(settings.normalize, settings.lowercase)
        return cls(Vocabulary.from_words(words, settings.unknown == "literal"), unit, None, normalizer)

    @classmethod
    def fit(cls, blocks: Iterable[Block], settings: TextSettings, unit: Unit = "line") -> WordTokenizer:
        """The vocabulary and the gaps of a text."""
        fitting = cls.fit_encode(blocks, settings, unit)
        for _ in fitting.learn():
            pass
        return fitting.tokenizer

    @staticmethod
    def fit_encode(blocks: Iterable[Block], settings: TextSettings, unit: Unit = "line") -> FitEncode:
        """Vocabulary and ids in one pass: iterate for the ids, then take ``.tokenizer``."""
        from nextword.text.learn import FitEncode

        return FitEncode(blocks, settings, unit)

    @cached_property
    def side(self) -> Side:
        """What codes unknown words and gaps; made from the vocabulary when it is first needed."""
        speller = Speller(self.vocab.joined.split(b"\n")[:-1])
        return Side(self.gaps, speller, self.literal if self.vocab.literal_unknown else None)

    def encode(self, text: str) -> Array:
        """The ids of a text within one sequence; a newline is white space like other."""
        index = self.vocab.index
        data = self.normalizer.data(to_bytes(text))
        return np.array([index.get(word, UNKNOWN) for word in data.split()], np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """The words, joined by one space."""
        return " ".join(self.vocab.word(int(i)) for i in ids if i not in (START, END))

    def piece(self, index: int) -> str:
        """The word of an id as it is shown."""
        return self.vocab.piece(index)

    def decoder(self) -> Decoder:
        """Ids to text, one by one."""
        return JoinedDecoder(self.vocab.word, " ")

    def encode_blocks(
        self, blocks: Iterable[Block], costs: bool = False, threads: int = 1
    ) -> Iterator[Encoded]:
        """The ids of a stream of text, piece by piece.

        A line that goes on in the next block goes on in the next Encoded too: the one ends without END,
        the other begins without START. ``threads`` are used where no costs are asked for.
        """
        chunks = self._chunks(blocks)
        if costs:
            return self._encode_with_costs(chunks)
        return self._encode(chunks, threads)

    def _chunks(self, blocks: Iterable[Block]) -> Iterator[Chunk]:
        for chunk in word_chunks(blocks, self.unit):
            if self.normalizer.changes:
                chunk = replace(chunk, data=self.normalizer.data(chunk.data))
            yield chunk

    def _encode(self, chunks: Iterator[Chunk], threads: int) -> Iterator[Encoded]:
        scanner = Scanner(self.vocab, self.unit, learn=False)
        if threads <= 1:
            for chunk in chunks:
                yield encoded(scanner.scan(chunk), chunk, self.unit)
            return
        running: deque[tuple[Future[Scanned], Chunk]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            for chunk in chunks:
                running.append((pool.submit(scanner.prepare(len(chunk.data)).scan, chunk), chunk))
                if len(running) > threads:
                    first, done = running.popleft()
                    yield encoded(first.result(), done, self.unit)
            while running:
                first, done = running.popleft()
                yield encoded(first.result(), done, self.unit)

    def _encode_with_costs(self, chunks: Iterator[Chunk]) -> Iterator[Encoded]:
        """The scanner learns the unknown words for a while, so that each is spelled once."""
        scanner = Scanner(self.vocab, self.unit, learn=True)
        known, spelled = self.vocab_size, np.zeros(0)
        for chunk in chunks:
            if len(spelled) > _REMEMBERED:
                scanner, spelled = Scanner(self.vocab, self.unit, learn=True), np.zeros(0)
            found = scanner.scan(chunk)
            new = scanner.words_from(known + len(spelled))
            spelled = np.concatenate((spelled, self.side.word_costs(new))) if new else spelled
            unknown = found.ids >= known
            nats = float(spelled[found.ids[unknown] - known].sum()) + self.side.gaps.total_cost(found.gaps)
            nats += found.unknown * self.side.literal_cost  # before the learned words become unknown too
            found.ids[unknown] = UNKNOWN
            found = found._replace(unknown=found.unknown + int(np.count_nonzero(unknown)))
            yield encoded(found, chunk, self.unit, nats)

    def can_code(self, data: bytes) -> bool:
        """Whether `split` can write these bytes: text without NUL, and nothing thrown away."""
        return self.lossless and is_text(data)

    def split(self, data: bytes) -> Iterator[tuple[int, SideSymbols]]:
        """Every token id of a file (END included, START not) with the symbols that complete it.

        Where lines are sequences a file without a newline at its end is split as if it had one; whoever
        joins the bytes again cuts them to the length of the file.
        """
        return split_words(data, self.vocab.index, self.side, self.unit)

    def joiner(self) -> WordJoiner:
        """The other direction of `split`."""
        return WordJoiner(self.vocab, self.side, self.unit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``tokenizer.json``."""
        write_json(
            path,
            {
                "name": self.name,
                "unit": self.unit,
                "unknown": "literal" if self.vocab.literal_unknown else "spell",
                **self.normalizer.to_json(),
                "literal": self.literal[0],
                "other_unknown": self.literal[1],
                "gaps": self.gaps.to_json(),
                "words": self.vocab.joined.decode("utf-8"),
            },
        )

    @classmethod
    def from_json(cls, fields: Fields) -> WordTokenizer:
        """Read and check what `save` wrote."""
        joined = fields.utf8(fields.text("words"))
        if not are_words(joined):
            raise FormatError(
                "the list of words is cut off, or a word is empty, holds white space or comes twice; "
                "make the tokenizer again",
                fields.path,
            )
        vocab = Vocabulary(joined, fields.text("unknown", ("spell", "literal")) == "literal")
        literal = (fields.count("literal"), fields.count("other_unknown"))
        gaps = GapModel.from_json(fields.values.get("gaps"), fields.path)
        return cls(vocab, fields.unit(), gaps, Normalizer.from_json(fields), literal)


def encoded(found: Scanned, chunk: Chunk, unit: Unit, nats: float = 0.0) -> Encoded:
    """A scanned chunk with its counts; where lines are sequences a line's end counts as a word."""
    words = len(found.ids) - found.begun - (0 if unit == "line" else found.ended)
    documents = _document_starts(found.ids, chunk) if unit == "line" else None
    return Encoded(found.ids, found.begun, words, chunk.bytes, found.unknown, nats, documents)


def _document_starts(ids: Array, chunk: Chunk) -> tuple[int, ...]:
    """Where the STARTs stand that begin a document."""
    if chunk.documents in ((), (0,)) and not chunk.is_open:
        return chunk.documents  # the usual case: a file begins here, or goes on
    starts = np.flatnonzero(ids == START)
    return tuple(starts[list(chunk.documents)].tolist())

"""The tokenizer ``words``: whatever stands between ASCII whitespace, one line per sequence.

The lectures' tokens; with the speller and the gap model it is also a lossless code for the file.
[IITD-1 "Language Modelling"; XMU "Recap: next token prediction and auto-regressive models"]
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from nextword.core.contracts import END, START, UNKNOWN, Block, Decoder, Encoded, Unit
from nextword.core.errors import FormatError
from nextword.text.chunks import Chunk, word_chunks
from nextword.text.detokenize import JoinedDecoder
from nextword.text.gaps import GapModel
from nextword.text.learn import FitEncode
from nextword.text.normalize import Normalizer, is_text, to_bytes
from nextword.text.scan import Scanned, Scanner, encoded
from nextword.text.settings import TextSettings
from nextword.text.side import Side, SideSymbols, WordJoiner, split_words
from nextword.text.speller import Speller
from nextword.text.tokenizers import Fields, write_json
from nextword.text.vocab import Vocabulary, are_words

Array = np.ndarray[Any, np.dtype[Any]]
# Number of cached spelling costs of unknown words while a text is evaluated.
_REMEMBERED = 1_000_000


class WordTokenizer:
    """Whitespace-separated words with a closed vocabulary, a speller for unknown words and a gap model."""

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
        """Take ``literal``: how many unknown training tokens were ``<unk>`` itself, and how many not."""
        self.vocab, self.unit, self.literal = vocab, unit, literal
        self.gaps = gaps or GapModel.default()
        self.normalizer = normalizer or Normalizer()
        self.vocab_size, self.lossless = len(vocab), not self.normalizer.changes

    @classmethod
    def from_words(
        cls, words: Iterable[str], settings: TextSettings | None = None, unit: Unit = "line"
    ) -> WordTokenizer:
        """Create a tokenizer for a given list of words, with the ids 3, 4, … in this order."""
        settings = settings or TextSettings()
        normalizer = Normalizer(settings.normalize, settings.lowercase)
        return cls(Vocabulary.from_words(words, settings.unknown == "literal"), unit, None, normalizer)

    @classmethod
    def fit(cls, blocks: Iterable[Block], settings: TextSettings, unit: Unit = "line") -> WordTokenizer:
        """Learn the vocabulary and the gaps of a text."""
        fitting = cls.fit_encode(blocks, settings, unit)
        for _ in fitting.learn():
            pass
        return fitting.tokenizer

    @classmethod
    def fit_encode(
        cls, blocks: Iterable[Block], settings: TextSettings, unit: Unit = "line"
    ) -> FitEncode[WordTokenizer]:
        """Build vocabulary and ids in one pass: iterate for the ids, then take ``.tokenizer``."""
        return FitEncode(cls, blocks, settings, unit)

    @cached_property
    def side(self) -> Side:
        """The code for unknown words and gaps, built from the vocabulary when first needed."""
        speller = Speller(self.vocab.joined.split(b"\n")[:-1])
        return Side(self.gaps, speller, self.literal if self.vocab.literal_unknown else None)

    def encode(self, text: str) -> Array:
        """Return the ids of a text within one sequence; a newline is ordinary whitespace."""
        index = self.vocab.index
        data = self.normalizer.data(to_bytes(text))
        return np.array([index.get(word, UNKNOWN) for word in data.split()], np.int32)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the words, joined by one space."""
        return " ".join(self.vocab.word(int(i)) for i in ids if i not in (START, END))

    def piece(self, index: int) -> str:
        """Return the word of an id as displayed."""
        return self.vocab.piece(index)

    def decoder(self) -> Decoder:
        """Return an incremental decoder."""
        return JoinedDecoder(self.vocab.word, " ")

    def encode_blocks(
        self, blocks: Iterable[Block], costs: bool = False, threads: int = 1
    ) -> Iterator[Encoded]:
        """Encode a stream of text, piece by piece.

        A line that continues in the next block continues in the next Encoded too: the first ends without
        END, the second starts without START. ``threads`` are used unless costs are requested.
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
        """Encode with costs; the scanner remembers unknown words, so that each is spelled once."""
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
            nats += found.unknown * self.side.literal_cost  # before the learned words become unknown again
            found.ids[unknown] = UNKNOWN
            literal = found.unknown
            found = found._replace(unknown=literal + int(np.count_nonzero(unknown)))
            yield replace(encoded(found, chunk, self.unit, nats), literal=literal)

    def can_code(self, data: bytes) -> bool:
        """Return whether `split` can encode these bytes: UTF-8 without NUL, with no lossy normalization."""
        return self.lossless and is_text(data)

    def split(self, data: bytes) -> Iterator[tuple[int, SideSymbols]]:
        """Split a file into token ids (END included, START not) with the symbols that complete each.

        Where lines are sequences, a file without a final newline is split as if it had one; whoever joins
        the bytes again cuts them to the length of the file.
        """
        return split_words(data, self.vocab.index, self.side, self.unit)

    def joiner(self) -> WordJoiner:
        """Return the inverse of `split`."""
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
                "the word list is cut off, or a word is empty, contains whitespace or is listed twice; "
                "train the tokenizer again",
                fields.path,
            )
        vocab = Vocabulary(joined, fields.text("unknown", ("spell", "literal")) == "literal")
        literal = (fields.count("literal"), fields.count("other_unknown"))
        gaps = GapModel.from_json(fields.values.get("gaps"), fields.path)
        return cls(vocab, fields.unit(), gaps, Normalizer.from_json(fields), literal)

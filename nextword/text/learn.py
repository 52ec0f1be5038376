"""Build a vocabulary and encode its text in one pass over the bytes.

New words get the next id when they first occur; with a limit on the vocabulary, the ids are written to a
temporary file first, and renumbered when it is known which words are kept.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import IO, Any, Generic, TypeVar

import numpy as np

from nextword.core.contracts import END, START, UNKNOWN, Block, Encoded, Unit
from nextword.text.chunks import Chunk, word_chunks
from nextword.text.gaps import GapModel
from nextword.text.normalize import Normalizer
from nextword.text.scan import GapCounts, Scanned, Scanner, encoded
from nextword.text.settings import TextSettings
from nextword.text.vocab import FIRST_WORD, Vocabulary

Array = np.ndarray[Any, np.dtype[Any]]


T = TypeVar("T")
Make = Callable[[Vocabulary, Unit, GapModel, Normalizer, tuple[int, int]], T]  # as WordTokenizer is made


class FitEncode(Generic[T]):
    """Iterate once for the ids of the text; ``tokenizer`` is available afterwards."""

    def __init__(
        self, make: Make[T], blocks: Iterable[Block], settings: TextSettings, unit: Unit = "line"
    ) -> None:
        self._make_tokenizer = make
        self._blocks, self._settings, self._unit = blocks, settings, unit
        self._normalizer = Normalizer(settings.normalize, settings.lowercase)
        self._is_literal = settings.unknown == "literal"
        self._scanner = Scanner(Vocabulary(b"", self._is_literal), unit, learn=True)
        self._gaps: GapCounts = Counter()
        self._counts = np.zeros(FIRST_WORD, np.int64)
        self._tokenizer: T | None = None

    @property
    def tokenizer(self) -> T:
        """The trained tokenizer; the text must have been read to its end."""
        if self._tokenizer is None:
            raise RuntimeError("the tokenizer is available only after all ids have been read")
        return self._tokenizer

    @property
    def _is_limited(self) -> bool:
        return self._settings.min_count > 1 or self._settings.max_vocab > 0

    def __iter__(self) -> Iterator[Encoded]:
        if not self._is_limited:
            for found, chunk in self.learn():
                yield encoded(found, chunk, self._unit)
            return
        with tempfile.TemporaryFile(prefix="nextword-") as file:
            sizes = []
            for found, chunk in self.learn():
                file.write(found.ids.tobytes())
                sizes.append((len(found.ids), chunk))
            file.seek(0)
            yield from self._renumbered(file, sizes)

    def learn(self) -> Iterator[tuple[Scanned, Chunk]]:
        """Scan the text; ids are those before any limit. Creates the tokenizer at the end."""
        for chunk in word_chunks(self._blocks, self._unit):
            if self._normalizer.changes:
                chunk = replace(chunk, data=self._normalizer.data(chunk.data))
            found = self._scanner.scan(chunk)
            self._gaps.update(found.gaps)
            if self._is_limited or self._is_literal:
                self._count(found.ids)
            yield found, replace(chunk, data=b"")
        self._tokenizer = self._make()

    def _count(self, ids: Array) -> None:
        more = np.bincount(ids, minlength=len(self._counts))
        more[: len(self._counts)] += self._counts
        self._counts = more

    def _make(self) -> T:
        joined = self._scanner.joined()
        literal = (int(self._counts[UNKNOWN]), 0)
        if self._is_limited:
            self._renumber, kept = limit(self._counts, self._settings.min_count, self._settings.max_vocab)
            words = joined.split(b"\n")
            joined = b"".join(words[i - FIRST_WORD] + b"\n" for i in kept)
            literal = (literal[0], int(self._counts[FIRST_WORD:].sum() - self._counts[kept].sum()))
        elif self._is_literal:  # words seen once stand in for words yet unseen
            literal = (literal[0], int(np.count_nonzero(self._counts[FIRST_WORD:] == 1)))
        vocab = Vocabulary(joined, self._is_literal)
        return self._make_tokenizer(vocab, self._unit, GapModel.fit(self._gaps), self._normalizer, literal)

    def _renumbered(self, file: IO[bytes], sizes: list[tuple[int, Chunk]]) -> Iterator[Encoded]:
        for size, chunk in sizes:
            ids = self._renumber[np.frombuffer(file.read(4 * size), np.int32)]
            begun, ended, unknown = (int(np.count_nonzero(ids == i)) for i in (START, END, UNKNOWN))
            yield encoded(Scanned(ids, Counter(), begun, ended, unknown), chunk, self._unit)


def limit(counts: Array, min_count: int, max_vocab: int) -> tuple[Array, Array]:
    """Map old ids to new ones, and list the ids kept: the most frequent words, ties by first occurrence."""
    kept = FIRST_WORD + np.flatnonzero(counts[FIRST_WORD:] >= min_count)
    if max_vocab and len(kept) > max_vocab:
        kept = np.sort(kept[np.argsort(-counts[kept], kind="stable")[:max_vocab]])
    renumber = np.zeros(len(counts), np.int32)
    renumber[:FIRST_WORD] = np.arange(FIRST_WORD)
    renumber[kept] = np.arange(FIRST_WORD, FIRST_WORD + len(kept), dtype=np.int32)
    return renumber, kept

"""Side symbols that make word ids a lossless code: spellings and gaps.

Every token of a file is followed by its side symbols: the whitespace before it and, if it is unknown, its
spelling. An entropy coder codes the token, then its side symbols; the joiner asks for them in the same order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from nextword.core.contracts import END, UNKNOWN, Unit
from nextword.text.gaps import GapModel
from nextword.text.scan import BLANK, INNER, LEADING, TRAILING
from nextword.text.speller import Speller
from nextword.text.vocab import Vocabulary

Array = np.ndarray[Any, np.dtype[Any]]
SideSymbols = tuple[tuple[Array, int], ...]
Asking = Generator[Array, int, bytes]

_LITERAL = b"<unk>"
_GAP_WORD = re.compile(rb"([ \t\v\f\r\n]*)([^ \t\v\f\r\n]*)")


class Side:
    """Speller and gap model; ``literal`` holds how many unknown tokens were ``<unk>`` itself."""

    def __init__(self, gaps: GapModel, speller: Speller, literal: tuple[int, int] | None) -> None:
        self.gaps, self.speller = gaps, speller
        self._literal: Array | None = None
        if literal is not None:
            counts = np.array(literal, np.float64) + 0.5
            self._literal = counts / counts.sum()

    @property
    def literal_cost(self) -> float:
        """Nats to distinguish a literal ``<unk>`` from an unknown word."""
        return 0.0 if self._literal is None else -math.log(self._literal[0])

    def word_costs(self, words: list[bytes]) -> Array:
        """Return the nats of spelling each of these unknown words."""
        flag = 0.0 if self._literal is None else -math.log(self._literal[1])
        return flag + self.speller.costs(words)

    def word_symbols(self, word: bytes) -> SideSymbols:
        """Return the symbols that spell out an UNKNOWN."""
        if self._literal is None:
            return self.speller.symbols(word)
        if word == _LITERAL:
            return ((self._literal, 0),)
        return ((self._literal, 1), *self.speller.symbols(word))

    def ask_word(self) -> Asking:
        """Decode an unknown word: ask for symbols and return it."""
        if self._literal is not None and (yield self._literal) == 0:
            return _LITERAL
        return (yield from self.speller.ask())


def split_words(
    data: bytes, index: dict[bytes, int], side: Side, unit: Unit
) -> Iterator[tuple[int, SideSymbols]]:
    """Yield the tokens of a file, each with its side symbols."""
    pieces = data.split(b"\n") if unit == "line" else [data]
    if unit == "line" and not pieces[-1]:
        pieces.pop()  # nothing follows the last newline
    for piece in pieces:
        has_word = False
        for gap, word in _GAP_WORD.findall(piece):
            if not word:
                yield END, side.gaps.symbols(TRAILING if has_word else BLANK, gap)
                break
            found = index.get(word, UNKNOWN)
            symbols = side.gaps.symbols(INNER if has_word else LEADING, gap)
            yield found, symbols + side.word_symbols(word) if found == UNKNOWN else symbols
            has_word = True


class WordJoiner:
    """Turns tokens and side symbols back into bytes.

    ``push(id)`` is a generator: it yields the probabilities of the next side symbol, is sent the symbol,
    and returns the bytes of the token. An END gives a newline where lines are sequences; at the end the
    bytes are cut to the length of the file, whose last line may have no newline.
    """

    def __init__(self, vocab: Vocabulary, side: Side, unit: Unit) -> None:
        self._words, self._side, self._end = vocab.words, side, b"\n" if unit == "line" else b""
        self.begin()

    def begin(self) -> None:
        """Start a new file."""
        self._has_word = False

    def push(self, index: int) -> Asking:
        """Return the bytes of one token, with the gap before it."""
        gaps = self._side.gaps
        if index == END:
            gap = yield from gaps.ask(TRAILING if self._has_word else BLANK)
            self._has_word = False
            return gap + self._end
        gap = yield from gaps.ask(INNER if self._has_word else LEADING)
        self._has_word = True
        if index == UNKNOWN:
            return gap + (yield from self._side.ask_word())
        return gap + self._words[index - 3].encode("utf-8")

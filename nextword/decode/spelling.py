"""Tokens as pieces of words: which begin a new word, which continue one, which end one inside them.

A word is what stands between ASCII whitespace, as for the tokenizer ``words``, so that the words of a model
over characters and those of a model over subwords are the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from nextword.core.contracts import END, PieceTokenizer, Tokenizer

SPACES = b" \t\n\r\v\f"
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
T = TypeVar("T", str, bytes)


class Spelling(NamedTuple):
    """A word as far as it is spelled; ``begun`` is False while only whitespace was read."""

    word: bytes = b""
    begun: bool = False
    done: bool = False  # whitespace came after it


class Pieces:
    """The bytes of every token of a vocabulary."""

    def __init__(self, tokenizer: PieceTokenizer) -> None:
        self.data = [tokenizer.data(index) for index in range(tokenizer.vocab_size)]
        self.breaks_V: Bools = np.array([data[:1] in SPACES and data != b"" for data in self.data])
        self.breaks_V[END] = True  # whatever ends a word that has begun
        self.letters_V: Bools = np.array([data[:1].isalnum() or data[:1] >= b"\x80" for data in self.data])
        # Characters and bytes: a text has one spelling only.
        self.are_single = all(len(data.decode("utf-8", "replace")) <= 1 for data in self.data)
        self._first = [_core(data.lstrip(SPACES)) for data in self.data]  # of a word that has not begun
        self._inside = [_core(data) for data in self.data]
        self._ids: dict[bytes, list[int]] = {}
        for index, data in enumerate(self.data):
            if data:
                self._ids.setdefault(data, []).append(index)
        self._closing = [i for i, data in enumerate(self.data) if data.rstrip(SPACES) not in (data, b"")]
        named = sorted((data, index) for index, data in enumerate(self.data) if data)
        self._texts = [data for data, _ in named]
        self._sorted: Ints = np.array([index for _, index in named], dtype=np.int64)
        self._longest = max((len(data) for data in self._ids), default=0)

    def read(self, so_far: Spelling, token: int) -> Spelling:
        """Return the word after one more token, which does not end a word that had begun before."""
        core, is_done = (self._inside if so_far.begun else self._first)[token]
        return so_far if core is None else Spelling(so_far.word + core, True, is_done)

    def beginnings(self, text: bytes) -> list[int]:
        """Return the tokens that are a beginning of a text and not all of it."""
        sizes = range(1, min(len(text), self._longest + 1))
        return [index for size in sizes for index in self._ids.get(text[:size], ())]

    def extensions(self, text: bytes) -> Ints:
        """Return the tokens that begin with a text."""
        first = bisect_left(self._texts, text)
        last = bisect_right(self._texts, text, first, key=_cut(len(text)))
        found: Ints = np.sort(self._sorted[first:last])
        return found

    def spellers(self, so_far: Spelling, wanted: Wanted) -> list[int]:
        """Return the tokens after which a word can still become one that is wanted."""
        tried: Iterable[int] = range(len(self.data))
        if so_far.begun:
            rests = [word[len(so_far.word) :] for word in wanted.words if word.startswith(so_far.word)]
            tried = {*self._closing, *(index for rest in rests for index in self.beginnings(rest + b"\0"))}
        return [
            index for index in sorted(tried) if self.data[index] and wanted.allows(self.read(so_far, index))
        ]


def _cut(size: int) -> Callable[[T], T]:
    """Return what takes the first characters or bytes."""
    return itemgetter(slice(size))


def _core(data: bytes) -> tuple[bytes | None, bool]:
    """Return what a token adds to a word, None where it has no bytes, and whether it ends the word."""
    core = next(iter(data.split(None, 1)), b"")  # nothing is left of a form feed
    return core if data else None, len(core) < len(data)


_known: WeakKeyDictionary[PieceTokenizer, Pieces] = WeakKeyDictionary()


def pieces_of(tokenizer: PieceTokenizer) -> Pieces:
    """Return the pieces of a tokenizer, made once: who types asks at every key."""
    if tokenizer not in _known:
        _known[tokenizer] = Pieces(tokenizer)
    return _known[tokenizer]


class Words:
    """The words of a vocabulary in the order of the alphabet, so that those with one beginning are found."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        named = sorted((tokenizer.piece(index), index) for index in range(tokenizer.vocab_size))
        self._texts, self._ids = [text for text, _ in named], [index for _, index in named]

    def beginning(self, part: str) -> list[int]:
        """Return the ids of all words that begin so."""
        first = bisect_left(self._texts, part)
        return self._ids[first : bisect_right(self._texts, part, first, key=_cut(len(part)))]


_words: WeakKeyDictionary[Tokenizer, Words] = WeakKeyDictionary()


def words_of(tokenizer: Tokenizer) -> Words:
    """Return the words of a tokenizer, sorted once."""
    if tokenizer not in _words:
        _words[tokenizer] = Words(tokenizer)
    return _words[tokenizer]


class Wanted:
    """Some words, and everything that may still become one of them."""

    def __init__(self, words: Iterable[bytes]) -> None:
        self.words = frozenset(words)
        self._beginnings = {word[:size] for word in self.words for size in range(len(word) + 1)}

    def allows(self, spelling: Spelling) -> bool:
        """Tell whether a spelling is one of the words, or may become one."""
        return spelling.word in (self.words if spelling.done else self._beginnings)

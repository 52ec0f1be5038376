"""The closed vocabulary: words and their ids, in order of first occurrence.

Ids 0, 1, 2 are UNKNOWN, START and END; a model gives every word of this list a probability and all
others that of UNKNOWN. [IITD-1 "Language Modelling"]. The words are stored as one bytes object, so that
opening a vocabulary of any size is instant; the dictionary is built when first needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nextword.core.contracts import SPECIALS, UNKNOWN
from nextword.core.errors import DataError

FIRST_WORD = len(SPECIALS)
_LOOKS_SPECIAL = re.compile(r"\\*(?:<unk>|<s>|</s>)")
_SPACE = re.compile(r"[ \t\v\f\r\n\0]")
_PIECE = 1 << 17  # bytes whose words get their keys at once
_BASE = 0x9E3779B97F4A7C15
Array = np.ndarray[Any, np.dtype[Any]]


def escape(word: str) -> str:
    """Return a word as displayed: one that looks like ``<unk>``, ``<s>`` or ``</s>`` gets a backslash."""
    return "\\" + word if _LOOKS_SPECIAL.fullmatch(word) else word


def unescape(shown: str) -> str:
    """Return the word displayed like this; the inverse of `escape`."""
    return shown[1:] if shown.startswith("\\") and _LOOKS_SPECIAL.fullmatch(shown) else shown


class Vocabulary:
    """Words with the ids 3, 4, …; ``joined`` holds them in this order, each followed by a newline.

    With ``literal_unknown`` the word ``<unk>`` of the text means UNKNOWN.
    """

    def __init__(self, joined: bytes, literal_unknown: bool = False) -> None:
        self.joined, self.literal_unknown = joined, literal_unknown

    @classmethod
    def from_words(cls, words: Iterable[str], literal_unknown: bool = False) -> Vocabulary:
        """Create a vocabulary of these words; they must be distinct and contain no whitespace."""
        listed = list(words)
        check_words(listed)
        return cls("".join(word + "\n" for word in listed).encode("utf-8"), literal_unknown)

    @cached_property
    def words(self) -> list[str]:
        """The words themselves; the first has id 3."""
        return self.joined.decode("utf-8").split("\n")[:-1]

    def first(self, count: int) -> list[str]:
        """Return the words with the lowest ids, without making a list of all."""
        ends = self.joined.split(b"\n", count)
        return [word.decode("utf-8") for word in ends[:-1]]

    @cached_property
    def index(self) -> dict[bytes, int]:
        """Dictionary from a word's bytes to its id."""
        found = {b"<unk>": UNKNOWN} if self.literal_unknown else {}
        found.update(zip(self.joined.split(b"\n")[:-1], range(FIRST_WORD, len(self)), strict=True))
        return found

    @cached_property
    def _count(self) -> int:
        return self.joined.count(b"\n")

    def __len__(self) -> int:
        """Return V: the words and the three special tokens."""
        return FIRST_WORD + self._count

    def id(self, word: str) -> int:
        """Return the id of a word, or UNKNOWN."""
        return self.index.get(word.encode("utf-8", "surrogatepass"), UNKNOWN)

    def word(self, index: int) -> str:
        """Return the word of an id as it occurs in a text; a special token by its name."""
        return self.words[index - FIRST_WORD] if index >= FIRST_WORD else SPECIALS[index]

    def piece(self, index: int) -> str:
        """Return the word of an id as displayed, so that special tokens and look-alikes differ."""
        return escape(self.words[index - FIRST_WORD]) if index >= FIRST_WORD else SPECIALS[index]

    def pieces(self) -> Iterator[str]:
        """Yield all of them, starting from id 0."""
        yield from SPECIALS
        yield from map(escape, self.words)


def are_words(joined: bytes) -> bool:
    """Return whether these are distinct words without whitespace, each followed by a newline."""
    if not joined:
        return True
    if not joined.endswith(b"\n") or joined.startswith(b"\n") or b"\n\n" in joined:
        return False
    if any(each in joined for each in (b" ", b"\t", b"\v", b"\f", b"\r", b"\0")):
        return False
    keys_V = _keys(joined)
    keys_V.sort()
    if not (keys_V[1:] == keys_V[:-1]).any():  # equal words have equal keys
        return True
    words = joined.split(b"\n")
    return len(set(words)) == len(words)


def _keys(joined: bytes) -> Array:
    """Return a number for each word, Σ (byte + 1) base^place modulo 2^64; no objects are made."""
    found, start = [], 0
    while start < len(joined):
        stop = joined.index(b"\n", min(start + _PIECE, len(joined) - 1)) + 1
        data = np.frombuffer(joined, np.uint8, stop - start, start)
        ends = np.flatnonzero(data == ord("\n"))
        starts = np.concatenate(([0], ends[:-1] + 1))
        powers = np.cumprod(np.full(int((ends - starts).max()) + 1, _BASE, np.uint64))
        places = np.arange(len(data)) - np.repeat(starts, ends + 1 - starts)
        found.append(np.add.reduceat((data.astype(np.uint64) + np.uint64(1)) * powers[places], starts))
        start = stop
    return np.concatenate(found)


def check_words(words: list[str], path: str | None = None, first_line: int | None = None) -> None:
    """Raise a DataError for empty words, words with whitespace, and duplicates."""

    def line(position: int) -> int | None:
        return None if first_line is None else first_line + position

    if len(set(words)) != len(words):
        seen: dict[str, int] = {}
        for position, word in enumerate(words):
            if word in seen:
                before = "" if first_line is None else f" (first in line {line(seen[word])})"
                raise DataError(
                    f"the word {word!r} is listed twice{before}; list every word once",
                    path,
                    line(position),
                )
            seen[word] = position
    if "" in words:
        raise DataError("there is an empty word; write one word per line", path, line(words.index("")))
    if _SPACE.search("".join(words)):
        position = next(i for i, word in enumerate(words) if _SPACE.search(word))
        raise DataError(
            f"the word {words[position]!r} contains whitespace; write one word per line",
            path,
            line(position),
        )


def read_word_list(path: str | Path) -> list[str]:
    """Read a vocabulary file, one word per line; ``<unk>``, ``<s>``, ``</s>`` are always included."""
    data = Path(path).read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError("the vocabulary is not UTF-8 text; save it as UTF-8", path, line) from error
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    words = [unescape(line) for line in lines if line not in SPECIALS]
    if len(words) == len(lines):
        check_words(words, str(path), 1)
    else:
        check_words([f"{i}" if line in SPECIALS else line for i, line in enumerate(lines)], str(path), 1)
    if not any(words):
        raise DataError("the vocabulary is empty; write one word per line", path)
    return words

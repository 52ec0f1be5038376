"""The words and characters that a tagger or classifier knows, and how a sentence becomes arrays.

A word has two sides: its entry in a list of known words (lower case, digits as 0: rare spellings share one
vector), and its form, the characters as they are written, so that an unknown word still has a shape.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Self
from zlib import crc32

import numpy as np
import numpy.typing as npt
from pydantic import Field

from nextword.core.errors import DamagedError
from nextword.core.settings import Settings

UNKNOWN = 0  # of words and characters; also what padding holds
FIRST, LAST = 1, 2  # characters: a word begins, ends
_DIGIT = re.compile(r"\d")
AFFIXES = 9  # prefixes and suffixes of 1 to 4 characters, and the shape
BUCKETS = 1 << 14  # rows of the hashed table of affixes
_LONGEST = 30  # characters of a form that are read
_SHAPE_RUN = 3  # a run of equal signs in a shape is cut to this length


class LexiconSettings(Settings):
    """Which words are known."""

    min_count: int = Field(1, ge=1, description="words seen less often have no vector of their own")
    max_words: int = Field(100_000, ge=1, le=10_000_000, description="most words with vectors of their own")
    lower: bool = Field(True, description="words are looked up in lower case, digits as 0")


@dataclass(frozen=True)
class Forms:
    """Distinct spellings as arrays: characters (padded with 0), how many there are, hashed affixes."""

    characters_FC: npt.NDArray[np.int64]
    lengths_F: npt.NDArray[np.int64]
    affixes_FA: npt.NDArray[np.int64]
    spellings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lengths_F)


@dataclass(frozen=True)
class Lexicon:
    """Known words, with how often each was seen, and known characters."""

    words: tuple[str, ...]
    counts: tuple[int, ...]
    characters: tuple[str, ...]
    lower: bool = True
    features: tuple[str, ...] = ()  # fingerprints of the language models whose states are features
    reader: Callable[[Sequence[Sequence[str]]], Sequence[Any]] | None = field(
        default=None, compare=False, repr=False
    )  # makes these features
    _word_ids: Mapping[str, int] = field(init=False, repr=False, compare=False)
    _character_ids: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_word_ids", {word: at for at, word in enumerate(self.words, start=1)})
        object.__setattr__(
            self, "_character_ids", {each: at for at, each in enumerate(self.characters, start=LAST + 1)}
        )

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], settings: LexiconSettings) -> Self:
        """Collect words and characters; frequent ones first, ties in order of their letters."""
        forms: Counter[str] = Counter()
        for words in sentences:
            forms.update(words)
        entries: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for form, count in forms.items():
            entries[entry(form, settings.lower)] += count
            for character in form:
                characters[character] += count
        known = [(word, count) for word, count in entries.items() if count >= settings.min_count]
        known.sort(key=lambda each: (-each[1], each[0]))
        known = known[: settings.max_words]
        return cls(
            tuple(word for word, _ in known),
            tuple(count for _, count in known),
            tuple(sorted(characters, key=lambda each: (-characters[each], each))),
            settings.lower,
        )

    @property
    def size(self) -> int:
        """Return the rows of a table of word vectors: the unknown word, then the known ones."""
        return len(self.words) + 1

    @property
    def alphabet(self) -> int:
        """Return the rows of a table of characters: unknown, first, last, then the known ones."""
        return len(self.characters) + LAST + 1

    def word_ids(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Look up words; `UNKNOWN` where one is not known."""
        find = self._word_ids.get
        return np.fromiter((find(entry(word, self.lower), UNKNOWN) for word in words), np.int64, len(words))

    def is_known(self, word: str) -> bool:
        """Tell whether training has seen a word (those of a file of vectors have a count of 0)."""
        at = self._word_ids.get(entry(word, self.lower))
        return at is not None and self.counts[at - 1] > 0

    def extended(self, words: Iterable[str]) -> Self:
        """Return a lexicon that also has words that training has not seen."""
        new = [word for word in dict.fromkeys(words) if word not in self._word_ids]
        return replace(self, words=(*self.words, *new), counts=(*self.counts, *(0 for _ in new)))

    def merged(self, other: Lexicon) -> Self:
        """Return a lexicon with what both know; words and characters of this one keep their places."""
        counts = Counter(dict(zip(self.words, self.counts, strict=True)))
        counts.update(dict(zip(other.words, other.counts, strict=True)))
        words = tuple(dict.fromkeys((*self.words, *other.words)))
        characters = tuple(dict.fromkeys((*self.characters, *other.characters)))
        return replace(self, words=words, counts=tuple(counts[word] for word in words), characters=characters)

    def forms(self, spellings: Sequence[str]) -> Forms:
        """Turn distinct spellings into arrays."""
        find = self._character_ids.get
        rows = [
            [FIRST, *(find(each, UNKNOWN) for each in shortened(spelling)), LAST] for spelling in spellings
        ]
        lengths_F = np.fromiter(map(len, rows), np.int64, len(rows))
        characters_FC = np.zeros((len(rows), int(lengths_F.max(initial=2))), np.int64)
        for row_C, row in zip(characters_FC, rows, strict=True):
            row_C[: len(row)] = row
        affixes_FA = np.array([affixes(spelling) for spelling in spellings], np.int64).reshape(-1, AFFIXES)
        return Forms(characters_FC, lengths_F, affixes_FA, tuple(spellings))

    def to_json(self) -> dict[str, Any]:
        """Return what a file holds."""
        return {
            "lower": self.lower,
            "words": list(self.words),
            "counts": list(self.counts),
            "characters": "".join(self.characters),
            **({"features": list(self.features)} if self.features else {}),
        }

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Undo `to_json`."""
        try:
            words, counts = tuple(map(str, value["words"])), tuple(map(int, value["counts"]))
            if len(words) != len(counts) or len(set(words)) != len(words):
                raise ValueError("words and counts differ")
            features = tuple(map(str, value.get("features", ())))
            return cls(words, counts, tuple(str(value["characters"])), bool(value["lower"]), features)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DamagedError(f"the list of words is damaged ({error}); train the run again") from error


def entry(form: str, lower: bool = True) -> str:
    """Return the form under which a word is listed."""
    return _DIGIT.sub("0", form.lower()) if lower else form


def shortened(spelling: str) -> str:
    """Return the characters that are read: of a very long word the first and the last."""
    half = _LONGEST // 2
    return spelling if len(spelling) <= _LONGEST else spelling[:half] + spelling[-half:]


def shape(spelling: str) -> str:
    """Return the shape of a word: "McDonald's" is XxXxxx'x; runs are cut."""
    signs: list[str] = []
    for character in spelling:
        sign = (
            "d" if character.isdigit() else "X" if character.isupper() else "x" if character.isalpha()
            else character
        )  # fmt: skip
        if signs[-_SHAPE_RUN:] != [sign] * _SHAPE_RUN:
            signs.append(sign)
    return "".join(signs)


@lru_cache(maxsize=1 << 16)
def affixes(spelling: str) -> list[int]:
    """Return the rows of the hashed table for prefixes and suffixes of 1 to 4 characters, and the shape."""
    low = spelling.lower()
    features = [f"{size}p{low[:size]}" for size in range(1, 5)] + [
        f"{size}s{low[-size:]}" for size in range(1, 5)
    ]
    features.append(f"h{shape(spelling)}")
    return [crc32(feature.encode("utf-8", "surrogatepass")) % BUCKETS for feature in features]

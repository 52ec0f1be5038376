"""What the sides of a corpus look like: frequent words and scripts, to notice what is swapped or foreign."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from nextword.core.errors import DamagedError

_WORDS = 200  # frequent words that are kept of each side
_TEXTS = 20_000  # that are looked at
_LEAST = 20  # words that must be there before anything is said
_RARE = 0.01  # of the letters: a script with fewer is not one of a side
_UNSPACED = 0x2E80  # from this code point on, a character counts as a word


@dataclass(frozen=True)
class Language:
    """The frequent words and the scripts of one side."""

    words: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> Language:
        """Look at the beginning of a side."""
        words: Counter[str] = Counter()
        scripts: Counter[str] = Counter()
        for text in islice(texts, _TEXTS):
            words.update(_words(text))
            scripts.update(scripts_of(text))
        least = _RARE * scripts.total()
        frequent = tuple(word for word, _ in words.most_common(_WORDS))
        return cls(frequent, tuple(sorted(name for name, count in scripts.items() if count > least)))

    def share(self, texts: Iterable[str]) -> float | None:
        """Return the share of words that are frequent here; None where there are too few words."""
        known, found = set(self.words), [word for text in texts for word in _words(text)]
        return sum(word in known for word in found) / len(found) if len(found) >= _LEAST else None

    def is_foreign(self, text: str) -> bool:
        """Tell whether most letters of a text are of scripts that this side does not have."""
        found = scripts_of(text)
        return bool(self.scripts) and 2 * sum(found[name] for name in self.scripts) < found.total()

    def to_json(self) -> dict[str, Any]:
        """Return what a run keeps."""
        return {"words": list(self.words), "scripts": list(self.scripts)}

    @classmethod
    def from_json(cls, value: Any) -> Language:
        """Undo `to_json`."""
        try:
            return cls(tuple(map(str, value["words"])), tuple(map(str, value["scripts"])))
        except (KeyError, TypeError) as error:
            raise DamagedError(f"the list of languages is damaged ({error}); train the run again") from error


def swapped(source: Language, target: Language, sources: Sequence[str], targets: Sequence[str] = ()) -> bool:
    """Tell whether texts look like the other side: more of their words are frequent there than here."""
    sides = [(source, target, sources), (target, source, targets)] if targets else [(source, target, sources)]
    for own, other, texts in sides:
        here, there = own.share(texts), other.share(texts)
        if here is None or there is None or there <= 1.5 * here + 0.02:
            return False
    return True


def scripts_of(text: str) -> Counter[str]:
    """Count the letters of a text by script: LATIN, DEVANAGARI, CYRILLIC, CJK, …"""
    return Counter(_script(letter) for letter in text if letter.isalpha())


@cache
def _script(letter: str) -> str:
    return unicodedata.name(letter, "UNKNOWN").split(" ")[0].split("-")[0]


def _words(text: str) -> list[str]:
    lowered = text.lower()
    return lowered.split() + [letter for letter in lowered if ord(letter) >= _UNSPACED and letter.isalpha()]

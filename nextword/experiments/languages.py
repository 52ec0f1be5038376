"""Languages to translate between that are always there: a made one, and a little Hindi of our own.

In the made language words are spelled backwards, an adjective follows its noun, and the verb ends a clause,
so that a translation must find every word at another place.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

_ADJECTIVES = ("old", "small", "green", "proud", "slow", "bright", "quiet", "strange", "young", "clever")
_NOUNS = (
    "king", "dog", "sailor", "bridge", "garden", "ship", "teacher", "river", "horse", "letter", "singer",
    "cloud", "farmer", "stone",
)  # fmt: skip
_VERBS = (
    "finds", "follows", "paints", "likes", "forgets", "carries", "hears", "watches", "greets", "builds",
    "leaves", "draws",
)  # fmt: skip
CLAUSE = 6  # words of a clause with the "and" before the next one


class Words(NamedTuple):
    """A source and its translation."""

    source: str
    target: str


def words() -> list[str]:
    """Return every word of sentences of one clause, and of their translations."""
    own = [*_ADJECTIVES, *_NOUNS, *_VERBS]
    return own + [word[::-1] for word in own]


def clauses(count: int, draw: random.Random) -> Words:
    """Return a sentence of this many clauses, "old king finds small dog and …", and its translation."""
    source: list[str] = []
    target: list[str] = []
    for at in range(count):
        one, two = draw.sample(_ADJECTIVES, 2)
        who, whom = draw.sample(_NOUNS, 2)
        verb = draw.choice(_VERBS)
        source += [*(["and"] if at else []), one, who, verb, two, whom]
        target += [*(["dna"] if at else []), *(word[::-1] for word in (who, one, whom, two, verb))]
    return Words(" ".join(source), " ".join(target))


def sentences(count: int, most: int, seed: int) -> list[Words]:
    """Return sentences of 1 to ``most`` clauses, each number equally often."""
    draw = random.Random(f"sentences {seed}")
    return [clauses(1 + at % most, draw) for at in range(count)]


def of_length(count: int, words: int, seed: int) -> list[Words]:
    """Return sentences of one number of clauses."""
    draw = random.Random(f"of length {words} {seed}")
    return [clauses(words, draw) for _ in range(count)]


# -- Hindi ----------------------------------------------------------------------------------------------

_PEOPLE = {
    "राम": "Ram", "रावण": "Ravan", "सीता": "Sita", "लक्ष्मण": "Lakshman", "भरत": "Bharat", "हनुमान": "Hanuman",
    "गीता": "Gita", "मोहन": "Mohan",
}  # fmt: skip
VERBS = {  # with ने and को the verb agrees with neither: past, its stem after "did not"
    "मारा": ("killed", "kill"), "देखा": ("saw", "see"), "बुलाया": ("called", "call"),
    "बचाया": ("saved", "save"), "हराया": ("defeated", "defeat"), "पहचाना": ("recognized", "recognize"),
}  # fmt: skip
_WHEN = {"कल": "yesterday", "आज": "today"}
NAMES = {english: hindi for hindi, english in _PEOPLE.items()}
SLIDE = Words("राम ने रावण को मारा", "Ram killed Ravan")


def hindi(count: int, seed: int = 0) -> list[Words]:
    """Return Hindi sentences and their English: subject ने, object को, verb last; without the slide's."""
    draw = random.Random(f"hindi {seed}")
    found: dict[Words, None] = {}
    while len(found) < count:
        each = _hindi(draw)
        if each.source != SLIDE.source:
            found[each] = None
    return list(found)


def _hindi(draw: random.Random) -> Words:
    who, whom = draw.sample(tuple(_PEOPLE), 2)
    verb = draw.choice(tuple(VERBS))
    when = draw.choice(("", *_WHEN))
    negated = draw.random() < 0.3
    source = [*([when] if when else []), who, "ने", whom, "को", *(["नहीं"] if negated else []), verb]
    past, stem = VERBS[verb]
    said = ["did", "not", stem] if negated else [past]
    target = [_PEOPLE[who], *said, _PEOPLE[whom], *([_WHEN[when]] if when else [])]
    return Words(" ".join(source), " ".join(target))


def longest(pairs: Sequence[Words]) -> int:
    """Return the number of words of the longest source."""
    return max(len(each.source.split()) for each in pairs)


# -- symbols to copy, and sentences with two translations -------------------------------------------------

_SYMBOLS = "abcdefghijklmnopqrst"


def symbols(count: int, longest: int, seed: int, backwards: bool = False) -> list[Words]:
    """Return sequences of 1 to ``longest`` symbols, to be copied or to be written backwards."""
    draw = random.Random(f"symbols {seed}")
    found = []
    for at in range(count):
        row = [draw.choice(_SYMBOLS) for _ in range(1 + at % longest)]
        found.append(Words(" ".join(row), " ".join(row[::-1] if backwards else row)))
    return found


def dialects(each: Words) -> tuple[str, str]:
    """Return two equally good translations: the made language, and the same in capitals, clauses reversed."""
    words = each.target.split()
    return each.target, " ".join(word.upper() for word in reversed(words))

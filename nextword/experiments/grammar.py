"""Made sentences whose tags are known: ambiguous words, names of places that are names of people, reviews.

What decides a tag is known, too: the word itself, a word before it, or a word after it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from nextword.experiments.learners import Sentence

Row = tuple[str, str, str]  # word, tag, what the tag depends on
ITSELF, BEFORE, AFTER, LATER = "the word itself", "a word before", "the next word", "a later word"

_PEOPLE = ("teacher", "student", "farmer", "doctor", "singer", "sailor")
_THINGS = ("garden", "letter", "river", "song", "bridge", "market", "house", "ship")
_BOTH = ("walk", "watch", "fish", "play", "book", "cook", "duck", "plant")  # a noun or a verb
_PRONOUNS = ("we", "they", "you", "i")
_DONE = ("slept", "sang", "arrived", "spoke", "waited")
_HOW = ("often", "today", "again", "slowly")
_WHERE = ("near", "behind", "beside", "under")


def tagged(count: int, seed: int) -> list[Sentence]:
    """Return sentences with parts of speech; of ambiguous words each reading is as frequent."""
    draw = random.Random(f"tagged {seed}")
    return [_sentence(draw) for _ in range(count)]


def _sentence(draw: random.Random) -> Sentence:
    """Join one or two clauses."""
    clauses: Sequence[Callable[[random.Random], list[Row]]] = (_noun_or_verb, _her, _that, _to, _before)
    rows = draw.choice(clauses)(draw)
    if draw.random() < 0.5:
        rows += [("and", "CCONJ", ITSELF), *draw.choice(clauses)(draw)]
    return _of([*rows, (".", "PUNCT", ITSELF)])


def _of(rows: Sequence[Row]) -> Sentence:
    words, tags, depends = zip(*rows, strict=True)
    return Sentence(words, tags, depends)


def _plain(words: Sequence[str], tags: str) -> list[Row]:
    """Return words whose tag depends on nothing else."""
    return [(word, tag, ITSELF) for word, tag in zip(words, tags.split(), strict=True)]


def _place(draw: random.Random) -> list[Row]:
    """Return "near the river", or nothing."""
    if draw.random() < 0.5:
        return []
    return _plain([draw.choice(_WHERE), "the", draw.choice(_THINGS)], "ADP DET NOUN")


def _noun_or_verb(draw: random.Random) -> list[Row]:
    """Return "the walk near the river" or "they walk near the river": the word before decides."""
    word = draw.choice(_BOTH)
    end = _plain([draw.choice(_WHERE), "the", draw.choice(_THINGS)], "ADP DET NOUN")
    if draw.random() < 0.5:
        return [*_plain([draw.choice(("the", "a"))], "DET"), (word, "NOUN", BEFORE), *end]
    return [*_plain([draw.choice(_PRONOUNS)], "PRON"), (word, "VERB", BEFORE), *end]


def _her(draw: random.Random) -> list[Row]:
    """Return "we saw her garden" or "we saw her often": the next word decides whether she owns something."""
    begin = _plain([draw.choice(_PRONOUNS), draw.choice(("saw", "met", "found"))], "PRON VERB")
    if draw.random() < 0.5:
        return [*begin, ("her", "DET", AFTER), *_plain([draw.choice(_THINGS)], "NOUN"), *_place(draw)]
    return [*begin, ("her", "PRON", AFTER), *_plain([draw.choice(_HOW)], "ADV"), *_place(draw)]


def _that(draw: random.Random) -> list[Row]:
    """Return "we know that teacher" or "we know that teachers sang": the next word decides."""
    begin = _plain([draw.choice(_PRONOUNS), draw.choice(("know", "hear", "believe"))], "PRON VERB")
    person = draw.choice(_PEOPLE)
    if draw.random() < 0.5:
        return [*begin, ("that", "DET", AFTER), *_plain([person], "NOUN"), *_place(draw)]
    return [*begin, ("that", "SCONJ", AFTER), *_plain([f"{person}s", draw.choice(_DONE)], "NOUN VERB")]


def _to(draw: random.Random) -> list[Row]:
    """Return "they came to the river" or "they came to sing": the next word decides."""
    begin = _plain([draw.choice(_PRONOUNS), draw.choice(("came", "went", "ran"))], "PRON VERB")
    if draw.random() < 0.5:
        return [*begin, ("to", "ADP", AFTER), *_plain(["the", draw.choice(_THINGS)], "DET NOUN")]
    return [
        *begin,
        ("to", "PART", AFTER),
        *_plain([draw.choice(("sing", "sleep", "speak"))], "VERB"),
        *_place(draw),
    ]


def _before(draw: random.Random) -> list[Row]:
    """Return "they left before the singer arrived" or "before the singer": the third word after decides."""
    begin = _plain([draw.choice(_PRONOUNS), draw.choice(("left", "ate", "stopped"))], "PRON VERB")
    who = _plain(["the", draw.choice(_PEOPLE)], "DET NOUN")
    if draw.random() < 0.5:
        return [*begin, ("before", "ADP", LATER), *who, *_place(draw)]
    return [*begin, ("before", "SCONJ", LATER), *who, *_plain([draw.choice(_DONE)], "VERB")]


# Names: each is a place or a person, and only a word some way off tells which.
NAMES = ("Paris", "Florence", "Sydney", "Austin", "Jordan", "Chelsea", "Georgia", "Charlotte")
PLACE, PERSON, NEITHER = "LOC", "PER", "O"
MUSEUMS = ("museums", "in", "Paris", "are", "amazing")
_BETWEEN = ("lovely", "old", "famous", "quiet")
FARTHEST = 4


def names(count: int, seed: int) -> list[Sentence]:
    """Return "museums in Paris are amazing", "friends of old Paris are amazing", …

    The tag of a name depends on "in" or "of", which stands 1 to `FARTHEST` words before it.
    """
    draw = random.Random(f"names {seed}")
    found = []
    for _ in range(count):
        away, is_place = draw.randint(1, FARTHEST), draw.random() < 0.5
        who = draw.choice(("museums", "gardens", "friends", "stories"))
        rows = _plain([who, "in" if is_place else "of"], f"{NEITHER} {NEITHER}")
        rows += _plain(draw.choices(_BETWEEN, k=away - 1), " ".join([NEITHER] * (away - 1)))
        rows.append((draw.choice(NAMES), PLACE if is_place else PERSON, str(away)))
        end = ["are", draw.choice(("amazing", "rare", "dear", "new"))]
        found.append(_of(rows + _plain(end, f"{NEITHER} {NEITHER}")))
    return found


# Reviews: words, parts of speech, and an opinion that no single word gives away.
GOOD, BAD = ("great", "lovely", "clever"), ("dull", "poor", "clumsy")
LIKED, DISLIKED = "liked", "disliked"


def reviews(count: int, seed: int) -> list[Sentence]:
    """Return "the play was not dull when you cook , liked and the book was poor , disliked", ….

    The word after a comma is the opinion of its clause: whether it is good, "not" taken into account.
    """
    draw = random.Random(f"reviews {seed}")
    return [_review(draw) for _ in range(count)]


def _review(draw: random.Random) -> Sentence:
    rows = _clause(draw)
    for _ in range(draw.randint(0, 1)):
        rows += _plain(["and"], "CCONJ") + _clause(draw)
    return _of(rows)


def _clause(draw: random.Random) -> list[Row]:
    """Return what was how, for whom and where, and the opinion."""
    is_good, is_denied = draw.random() < 0.5, draw.random() < 0.3
    rows = [*_plain(["the"], "DET"), (draw.choice(_BOTH), "NOUN", BEFORE), *_plain(["was"], "AUX")]
    rows += _plain(["not"], "PART") if is_denied else []
    rows += _plain([draw.choice(GOOD if is_good != is_denied else BAD)], "ADJ")
    if draw.random() < 0.5:
        rows += _plain(["when", draw.choice(_PRONOUNS)], "SCONJ PRON")
        rows += [(draw.choice(_BOTH), "VERB", BEFORE), *_place(draw)]
    return rows + _plain([",", LIKED if is_good else DISLIKED], "PUNCT VERB")

"""How surprising each word of a sentence is, -log2 p, for models with different tokenizers.

The surprise of a word is the sum over its tokens, so that models of letters, subwords and words share a
table; an unknown word also costs its spelling, as in bits per byte.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from nextword.core.contracts import END, NATS_PER_BIT, START, UNKNOWN, Block, LanguageModel, Tokenizer
from nextword.evaluation.lm.streams import ScoreStream

_SPACE = re.compile("[ \t\n\v\f\r]+")
_LONG_WORD = 14  # letters; where words are longer on average, spaces do not divide them


def units(text: str) -> list[str]:
    """Split into whitespace words; single characters where a script writes no spaces."""
    words = _words(text)
    if not words or sum(map(len, words)) / len(words) <= _LONG_WORD:
        return words
    found: list[str] = []
    for character in "".join(words):
        if found and unicodedata.category(character) in ("Mn", "Mc", "Me"):
            found[-1] += character  # an accent belongs to its letter
        else:
            found.append(character)
    return found


def by_word(
    model: LanguageModel, tokenizer: Tokenizer, text: str, before: str = ""
) -> list[tuple[str, float]]:
    """Return every unit of a text with its bits, given the text before it; infinite if impossible."""
    names, first = units(text), _letters(before)
    ends = list(accumulate(map(_letters, names), initial=first))[1:]
    bits = [0.0] * len(names)
    for (begin, end), value in _tokens(model, tokenizer, before + text):
        if not names or end <= first:
            continue
        unit = min(bisect_right(ends, begin), len(ends) - 1)
        last = max(unit, min(bisect_left(ends, end), len(ends) - 1))  # a token may be longer than a unit
        for each in range(unit, last + 1):
            bits[each] -= value / NATS_PER_BIT / (last + 1 - unit)
    return [(name, each + spelling(tokenizer, name)) for name, each in zip(names, bits, strict=True)]


def _tokens(model: LanguageModel, tokenizer: Tokenizer, text: str) -> list[tuple[tuple[int, int], float]]:
    """Return the place of each token of a text, in letters, and its log p; END is left out."""
    pieces = list(tokenizer.encode_blocks([Block(text.encode(), True)]))
    if not pieces:
        return []
    stream, ids = ScoreStream(model, carry=True), np.concatenate([piece.ids for piece in pieces])
    real = (ids != START) & (ids != END)
    logp = np.concatenate([np.asarray(stream.push(piece.ids, piece.documents)) for piece in pieces])[real]
    return list(zip(_places(tokenizer, ids[real].tolist(), text), logp.tolist(), strict=True))


def _places(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[tuple[int, int]]:
    """Find the letters that each token writes, without whitespace; a split character is its last token's."""
    words = _words(text)
    if len(words) == len(ids):
        ends = list(accumulate(map(_letters, words), initial=0))
        return list(pairwise(ends))
    places: list[tuple[int, int]] = []
    waiting: list[int] = []
    known = before = 0
    for index in ids:
        if index == UNKNOWN:
            known, waiting = before + 1, []
            after = known
        else:
            waiting.append(index)
            after = known + _letters(tokenizer.decode(waiting).rstrip("\ufffd"))
        places.append((before, max(after, before + 1)))  # whitespace belongs to what follows
        before = after
    return places


def _words(text: str) -> list[str]:
    return [word for word in _SPACE.split(text) if word]


def _letters(text: str) -> int:
    return sum(not character.isspace() for character in text)


def spelling(tokenizer: Tokenizer, word: str) -> float:
    """Return the bits that spell a word, or several, with unknown parts."""
    pieces = tokenizer.encode_blocks([Block(word.encode(), True)], costs=True)
    return sum(piece.side_nats for piece in pieces if piece.unknown) / NATS_PER_BIT

"""How surprising each word of a sentence is, -log2 p, for models that cut text in different ways.

The surprise of a word is the sum over its tokens, so that letters, pieces and words stand in one table; an
unknown word also costs its spelling, as in bits per byte.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from nextword.core.contracts import UNKNOWN, Block, LanguageModel, Tokenizer
from nextword.evaluate.lines import line_batches

_SPACE = re.compile("[ \t\n\v\f\r]+")
_LONG_WORD = 14  # letters; where words are longer on average, spaces do not divide them


def units(text: str) -> list[str]:
    """White-space words; single characters where a script writes no spaces between words."""
    words = [word for word in _SPACE.split(text) if word]
    if not words or sum(map(len, words)) / len(words) <= _LONG_WORD:
        return words
    found: list[str] = []
    for character in "".join(words):
        if found and unicodedata.category(character) in ("Mn", "Mc", "Me"):
            found[-1] += character  # an accent belongs to its letter
        else:
            found.append(character)
    return found


def by_word(model: LanguageModel, tokenizer: Tokenizer, text: str) -> list[tuple[str, float]]:
    """Every unit of a line with its bits; infinite where the model calls it impossible."""
    names = units(text)
    bits = [0.0] * len(names)
    batch = next(line_batches(model, tokenizer, [Block(text.encode(), True)]), None)
    if batch is None or not names:
        return []
    ids, logp = batch.ids[1:-1].tolist(), batch.logp[1:-1].tolist()
    for units_of_token, value in zip(_units(tokenizer, ids, names), logp, strict=True):
        for unit in units_of_token:
            bits[unit] -= value / math.log(2) / len(units_of_token)
    return [(name, each + _spelling(tokenizer, name)) for name, each in zip(names, bits, strict=True)]


def _units(tokenizer: Tokenizer, ids: Sequence[int], names: list[str]) -> list[range]:
    """Which units each token belongs to: one, or several where a token is longer than a unit."""
    if len(ids) == len(names):
        return [range(i, i + 1) for i in range(len(ids))]
    ends = list(accumulate(map(_letters, names)))
    found = []
    for first, last in _letter_places(tokenizer, ids):
        unit = min(bisect_right(ends, first), len(ends) - 1)
        found.append(range(unit, max(unit, min(bisect_left(ends, last), len(ends) - 1)) + 1))
    return found


def _letter_places(tokenizer: Tokenizer, ids: Sequence[int]) -> list[tuple[int, int]]:
    """The letters, white space not counted, that each token writes; a cut character is not yet written."""
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
        places.append((before, after))
        before = after
    return places


def _letters(text: str) -> int:
    return sum(not character.isspace() for character in text)


def _spelling(tokenizer: Tokenizer, word: str) -> float:
    """The bits that spell a word with unknown parts."""
    pieces = tokenizer.encode_blocks([Block(word.encode(), True)], costs=True)
    return sum(piece.side_nats for piece in pieces if piece.unknown) / math.log(2)

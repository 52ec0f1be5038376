"""The tokens of a text where they stand, each with its surprise -log2 p: a text to be coloured.

Joined, the texts of all tokens are the text again, whitespace included, whatever the tokenizer. The bytes of
one character, and a letter with its accents and vowel signs, are one token here, and cost their sum.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from nextword.core.contracts import (
    END,
    NATS_PER_BIT,
    START,
    UNKNOWN,
    Block,
    Carrier,
    LanguageModel,
    PieceTokenizer,
    State,
    Tokenizer,
    bits_per_byte,
)
from nextword.core.errors import DataError
from nextword.evaluation.lm.streams import ScoreStream
from nextword.evaluation.lm.surprise import by_word
from nextword.mixtures.evidence import read
from nextword.models.distributions import as_numpy, without_nan

_SPACES = " \t\n\v\f\r"  # what stands between words, as for the tokenizer ``words``


@dataclass(frozen=True)
class PlacedToken:
    """A token as it stands in the text, with the whitespace before it; "" for the end of the text."""

    text: str
    bits: float
    number: int  # of its first prediction in the text
    known: bool = True
    parts: int = 1  # predictions that it is made of


@dataclass(frozen=True)
class PlacedText:
    """A text token by token, and what it costs altogether."""

    tokens: tuple[PlacedToken, ...]
    predictions: int
    unknown: int
    perplexity: float
    bits_per_byte: float


@dataclass(frozen=True)
class Alternatives:
    """What else could have stood at one place: pairs (text, probability), the most likely first."""

    likely: tuple[tuple[str, float], ...]
    text: str  # what stands there
    probability: float
    rank: int  # 1: the most likely


def placed(model: LanguageModel, tokenizer: Tokenizer, text: str) -> PlacedText:
    """Read a text as `eval` does, as a whole, and place every token in it."""
    if not text:
        raise DataError("the text is empty, so there is nothing to score; write at least one word")
    data = text.encode("utf-8", "surrogatepass")
    stream = ScoreStream(model, carry=True)
    ids: list[int] = []
    nats: list[float] = []
    side = 0.0
    for piece in tokenizer.encode_blocks([Block(data, True, "the text")], costs=True):
        logp = np.asarray(stream.push(piece.ids, piece.documents), np.float64)
        is_real = np.asarray(piece.ids) != START
        ids += np.asarray(piece.ids)[is_real].tolist()
        nats += (-logp[is_real]).tolist()
        side += piece.side_nats
    total, mean = math.fsum(nats), math.fsum(nats) / max(1, len(nats))
    return PlacedText(
        tuple(_placed(tokenizer, ids, nats, text)),
        len(ids),
        ids.count(UNKNOWN),
        math.exp(mean) if mean < 700 else math.inf,
        bits_per_byte(total + side, len(data)),
    )


def placed_words(model: LanguageModel, tokenizer: Tokenizer, text: str) -> list[PlacedToken]:
    """Return the surprise of every word, for models with different tokens; see `surprise.by_word`."""
    found, at = [], 0
    for number, (word, bits) in enumerate(by_word(model, tokenizer, text)):
        end = text.index(word, at) + len(word)
        found.append(PlacedToken(text[at:end], bits, number))
        at = end
    if at < len(text) and found:
        found[-1] = replace(found[-1], text=found[-1].text + text[at:])
    return found


def alternatives(
    model: LanguageModel, tokenizer: Tokenizer, text: str, number: int, top: int = 8
) -> Alternatives:
    """Return what a model expected in the place of a prediction, counted from 0 over the whole text."""
    word, state = _before(model, tokenizer, text, number)
    p_V = np.exp(without_nan(as_numpy(model.next(state), np.float64)[0]))
    p_V[START] = -1.0  # sorts last
    order = np.lexsort((np.arange(len(p_V)), -p_V))[: min(top, len(p_V) - 1)]
    likely = tuple((tokenizer.piece(int(index)), float(p_V[index])) for index in order)
    rank = 1 + int((p_V > p_V[word]).sum())
    return Alternatives(likely, tokenizer.piece(word), float(p_V[word]), rank)


def _before(model: LanguageModel, tokenizer: Tokenizer, text: str, number: int) -> tuple[int, State]:
    """Return the token with this number, and the state before it."""
    state: State = None
    seen = 0
    for piece in tokenizer.encode_blocks([Block(text.encode("utf-8", "surrogatepass"), True)]):
        begins = None if piece.documents is None else set(piece.documents)
        ids = np.asarray(piece.ids, dtype=np.int64)
        places = [*np.flatnonzero(ids == START).tolist(), len(ids)]
        if places[0] > 0:
            places = [-1, *places]  # the first tokens belong to the sequence of the piece before
        for first, last in pairwise(places):
            if first >= 0:
                resumes = begins is not None and first not in begins and state is not None
                state = model.carry(state) if resumes and isinstance(model, Carrier) else model.start(1)
            words = ids[first + 1 : last]
            if number < seen + len(words):
                return int(words[number - seen]), _after(model, words[: number - seen], state)
            state, seen = _after(model, words, state), seen + len(words)
    raise DataError(f"the text has {seen:,} tokens, and token {number + 1:,} was asked for; ask again")


def _after(model: LanguageModel, words: Any, state: State) -> State:
    return read(model, words[None], np.array([len(words)]), state) if len(words) else state


def _placed(
    tokenizer: Tokenizer, ids: Sequence[int], nats: Sequence[float], text: str
) -> Iterator[PlacedToken]:
    """Put tokens together until they write something that can be seen by itself."""
    place = _PieceWalk(tokenizer, text) if isinstance(tokenizer, PieceTokenizer) else _WordWalk(text)
    waiting: PlacedToken | None = None
    for number, (index, cost) in enumerate(zip(ids, nats, strict=True)):
        shown = place.step(index, number == len(ids) - 1)
        token = PlacedToken(shown, cost / NATS_PER_BIT, number, index != UNKNOWN)
        if waiting is None:
            waiting = token
        elif (waiting.text == "" and index != END) or _is_mark(shown):
            waiting = replace(
                waiting, text=waiting.text + shown, bits=waiting.bits + token.bits,
                known=waiting.known and token.known, parts=waiting.parts + 1,
            )  # fmt: skip
        else:
            yield waiting
            waiting = token
    if waiting is not None:
        yield waiting


def _is_mark(text: str) -> bool:
    """Tell whether a text begins with an accent or vowel sign, which belongs to the letter before it."""
    return text[:1] in ("\u200c", "\u200d") or unicodedata.category(text[:1] or " ").startswith("M")


class _WordWalk:
    """Words and the whitespace before them; END is the end of a line."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def step(self, index: int, is_last: bool) -> str:
        """Return what the next token covers."""
        begin, end = self.at, self.at
        if index == END:
            line = self.text.find("\n", begin)
            end = len(self.text) if is_last or line < 0 else line + 1
        else:
            while end < len(self.text) and self.text[end] in _SPACES:
                end += 1
            while end < len(self.text) and self.text[end] not in _SPACES:
                end += 1
        self.at = end
        return self.text[begin:end]


class _PieceWalk:
    """Pieces of the text, one after the other; where the tokenizer changes letters, as the text has them."""

    def __init__(self, tokenizer: Tokenizer, text: str) -> None:
        self.tokenizer, self.decoder, self.text, self.at = tokenizer, tokenizer.decoder(), text, 0

    def step(self, index: int, is_last: bool) -> str:
        """Return what the next token covers."""
        begin = self.at
        if index == END:
            self.decoder = self.tokenizer.decoder()
            is_line = self.text.startswith(("\n", "\r\n"), begin)
            self.at = len(self.text) if is_last else self.text.index("\n", begin) + 1 if is_line else begin
        else:
            length = 1 if index == UNKNOWN else len(self.decoder.push(index))
            self.at = min(len(self.text), begin + length)
        return self.text[begin : self.at]

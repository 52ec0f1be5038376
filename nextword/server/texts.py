"""Texts and log-probabilities of an answer, whole or piece by piece."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nextword.core.contracts import SPECIALS, START, Tokenizer
from nextword.decode.requests import Row, Scored
from nextword.decode.text import TextStream

LOWEST = -9999.0  # stands for log 0, since JSON has no infinity
REASONS = {"end": "stop", "stop": "stop", "length": "length"}


@dataclass
class Marked:
    """Tokens with their log-probabilities, in the form of /v1/completions."""

    tokens: list[str] = field(default_factory=list)
    token_logprobs: list[float | None] = field(default_factory=list)
    top_logprobs: list[dict[str, float] | None] = field(default_factory=list)
    text_offset: list[int] = field(default_factory=list)

    def add_start(self) -> None:
        """Add START, which was given and so has no probability."""
        self.tokens.append(SPECIALS[START])
        self.token_logprobs.append(None)
        self.top_logprobs.append(None)
        self.text_offset.append(0)

    def add(self, token: Scored, tokenizer: Tokenizer, offset: int) -> None:
        """Add one token that begins at this character of the text."""
        self.tokens.append(tokenizer.piece(token.id))
        self.token_logprobs.append(finite(token.logprob))
        self.top_logprobs.append(_top(token, tokenizer))
        self.text_offset.append(offset)

    def to_json(self, top: int) -> dict[str, Any]:
        """Return the form of OpenAI's API."""
        return {
            "tokens": self.tokens, "token_logprobs": self.token_logprobs,
            "top_logprobs": self.top_logprobs if top else None, "text_offset": self.text_offset,
        }  # fmt: skip


def _top(token: Scored, tokenizer: Tokenizer) -> dict[str, float]:
    """Return the alternatives by their texts, and the token itself; of equal texts the likelier counts."""
    made: dict[str, float] = {}
    for index, logp in (*token.top, (token.id, token.logprob)):
        text = tokenizer.piece(index)
        made[text] = max(made.get(text, -math.inf), finite(logp))
    return made


def finite(logp: float) -> float:
    """Return a number that JSON has."""
    return max(logp, LOWEST)


def mark_prompt(read: Sequence[Scored], tokenizer: Tokenizer, has_start: bool) -> Marked:
    """Return the tokens of a prompt with where each begins in its text."""
    marked, decoder, offset = Marked(), tokenizer.decoder(), 0
    if has_start:
        marked.add_start()
    for token in read:
        marked.add(token, tokenizer, offset)
        offset += len(decoder.push(token.id))
    return marked


class Writer:
    """The text of one row as it grows: what can be shown, and the tokens of it."""

    def __init__(
        self, tokenizer: Tokenizer, prompt: Sequence[int], stop: tuple[str, ...], offset: int
    ) -> None:
        self._tokenizer = tokenizer
        self._stream = TextStream(tokenizer, prompt, stop)
        self._offset = offset

    def push(self, tokens: Sequence[Scored], reason: str, marked: Marked | None) -> str:
        """Read tokens; return the text that can be shown now, and note the tokens in ``marked``."""
        text = ""
        for token in tokens:
            if marked is not None:
                marked.add(token, self._tokenizer, self._offset + len(text))
            text += self._stream.push(token.id)
        if reason:
            text += self._stream.flush()
        self._offset += len(text)
        return text


def arrived_rows(pieces: Iterable[tuple[Row, Scored]]) -> Iterator[tuple[Row, list[Scored], bool]]:
    """Yield each row with its new tokens, and whether its last is among them."""
    arrived: dict[Row, list[Scored]] = {}
    for row, token in pieces:
        arrived.setdefault(row, []).append(token)
    for row, tokens in arrived.items():
        yield row, tokens, bool(row.reason) and tokens[-1] is row.tokens[-1]

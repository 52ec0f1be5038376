"""The results of a run: plain objects with a representation for terminals and notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from nextword.core.display import markup

_ROWS = 20


@dataclass(frozen=True)
class Token:
    """One token of a text as it is shown, and its natural log-probability."""

    text: str
    logprob: float
    known: bool = True

    def __repr__(self) -> str:
        return f"Token({self.text!r}, {self.logprob:.4f}{'' if self.known else ', unknown'})"


@dataclass(frozen=True)
class Score:
    """How well a model predicts a text."""

    nll: float  # nats per token
    perplexity: float
    bits_per_byte: float
    tokens: tuple[Token, ...]
    is_probability: bool = True

    @property
    def logprob(self) -> float:
        """The natural log-probability of the whole text."""
        return math.fsum(token.logprob for token in self.tokens)

    def __repr__(self) -> str:
        kind = "" if self.is_probability else ", scores, not probabilities"
        return (
            f"Score(nll={self.nll:.4f}, perplexity={self.perplexity:.2f}, "
            f"bits_per_byte={self.bits_per_byte:.4f}, {len(self.tokens)} tokens{kind})"
        )

    def _repr_html_(self) -> str:
        rows = [(token.text, f"{token.logprob:.3f}") for token in self.tokens[:_ROWS]]
        more = f"<p>and {len(self.tokens) - _ROWS} more tokens</p>" if len(self.tokens) > _ROWS else ""
        return f"<p>{markup(repr(self))}</p>{_table(('token', 'log p'), rows)}{more}"


class Next(list[tuple[str, float]]):
    """Pairs (text, probability), the most likely first; ``is_probability`` is False for scores."""

    def __init__(self, pairs: Iterable[tuple[str, float]], is_probability: bool = True) -> None:
        super().__init__(pairs)
        self.is_probability = is_probability

    def __repr__(self) -> str:
        pairs = ", ".join(f"({text!r}, {value:.4g})" for text, value in self[:_ROWS])
        return f"[{pairs}{f', … {len(self) - _ROWS:,} more' if len(self) > _ROWS else ''}]"

    def _repr_html_(self) -> str:
        kind = "probability" if self.is_probability else "score (not a probability)"
        return _table(("next", kind), [(text, f"{value:.6f}") for text, value in self[:_ROWS]])


class Text(str):
    """A generated text, prompt included, with how it was generated."""

    logprob: float
    reason: str  # end, length or stop
    seed: int | None
    tokens: int

    def __new__(cls, text: str, logprob: float, reason: str, seed: int | None, tokens: int) -> Text:
        """Make a string with four facts about it."""
        made = super().__new__(cls, text)
        made.logprob, made.reason, made.seed, made.tokens = logprob, reason, seed, tokens
        return made

    def _repr_html_(self) -> str:
        return f"<blockquote style='white-space:pre-wrap'>{markup(self)}</blockquote>"


def _table(heads: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    head = "".join(f"<th style='text-align:left'>{markup(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(f'<td>{markup(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"

"""The result of an evaluation: plain numbers with a representation for terminals, JSON and notebooks."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Report:
    """The numbers of one model on one text; `perplexity` is over tokens, without spelling and gaps."""

    tokens: int  # predictions made: END counts, START does not
    words: int  # whitespace words, plus line ends where the unit is the line
    bytes: int
    nll: float  # nats per token
    perplexity: float
    word_perplexity: float
    bits_per_byte: float
    unknown_rate: float  # of the tokens other than END
    seconds: float
    signature: str
    lossless: bool = True
    context: int | None = None  # the longest n-gram; None: no limit
    zero_tokens: int = 0  # tokens of probability 0
    first_zero: str | None = None
    is_probability: bool = True
    dynamic: str | None = None  # how the model adapted to the text: rule/rate/decay/segment

    @property
    def explanation(self) -> str:
        """Why a number is missing or needs care; empty where all is well."""
        said = []
        if self.zero_tokens:
            said.append(
                f"the model gives probability 0 to {self.zero_tokens:,} of {self.tokens:,} tokens, the first "
                f"is {self.first_zero}: no finite perplexity; use a smoothing that leaves no zeros"
            )
        elif not all(math.isfinite(value) for value in (self.perplexity, self.word_perplexity)):
            said.append("a perplexity is too large to represent; use nll instead")
        if not self.is_probability:
            said.append("the model gives scores, not probabilities: none of these numbers is a perplexity")
        if not self.lossless:
            said.append(
                "the tokenizer discards part of the text: bits per byte do not describe the whole file"
            )
        return "; ".join(said)

    def to_json(self) -> dict[str, Any]:
        """Return every number; one that is not finite is null, and `explanation` says why."""
        values = asdict(self)
        if self.dynamic is None:
            del values["dynamic"]
        for key, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                values[key] = None
        if self.explanation:
            values["explanation"] = self.explanation
        return values

    def rows(self) -> list[tuple[str, str]]:
        """Return names and values as they are shown."""
        return [
            ("bits per byte", _shown(self.bits_per_byte, 4)),
            ("perplexity", _shown(self.perplexity, 2)),
            ("word perplexity", _shown(self.word_perplexity, 2)),
            ("nats per token", _shown(self.nll, 4)),
            ("tokens", f"{self.tokens:,}"),
            ("words", f"{self.words:,}"),
            ("bytes", f"{self.bytes:,}"),
            ("unknown", f"{self.unknown_rate:.2%}"),
            ("lossless", "yes" if self.lossless else "no"),
            *([("dynamic", self.dynamic)] if self.dynamic is not None else []),
            ("seconds", f"{self.seconds:.2f}"),
            ("signature", self.signature),
        ]

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        lines = [f"{name:<{width}}  {value}" for name, value in self.rows()]
        return "\n".join([*lines, *([self.explanation] if self.explanation else [])])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self.rows()
        )
        note = f"<p>{html.escape(self.explanation)}</p>" if self.explanation else ""
        return f"<table>{cells}</table>{note}"


def _shown(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if math.isfinite(value) else "infinite"

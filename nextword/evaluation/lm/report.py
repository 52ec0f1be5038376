"""The result of an evaluation: plain numbers with a representation for terminals, JSON and notebooks."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass
from typing import Any

from nextword.core.display import show_number
from nextword.drawing.page import Page, Table

_MANY_UNSEEN = 0.25  # the share of new words from which on they decide the numbers
_STORED = 8  # bits of a byte


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
    literal_rate: float = 0.0  # the part of unknown_rate that is ``<unk>`` in the text, no new word
    side_bits_per_byte: float = 0.0  # the part of bits_per_byte that spells unknown words and codes layout
    training_text: str | None = None  # which part of the text the model was trained on, if any

    @property
    def unseen_rate(self) -> float:
        """The share of the tokens that are new to the model."""
        return max(0.0, self.unknown_rate - self.literal_rate)

    def __repr__(self) -> str:
        return (
            f"<Report: {show_number(self.bits_per_byte, 4)} bits per byte, "
            f"perplexity {show_number(self.perplexity)}, {self.tokens:,} tokens, "
            f"{self.unknown_rate:.2%} unknown>"
        )

    @property
    def explanation(self) -> str:
        """Why a number is missing or needs care; empty where all is well."""
        said = []
        if self.training_text is not None:
            said.append(
                f"{self.training_text}: these numbers say little about new text; measure on a text that the "
                "model has not seen"
            )
        said += self._out_of_domain()
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

    def _out_of_domain(self) -> list[str]:
        """Explain numbers that come from words the model does not know, and say what to do."""
        costly = self.bits_per_byte > _STORED and math.isfinite(self.bits_per_byte)
        said = []
        if self.unseen_rate > _MANY_UNSEEN:
            share = self.side_bits_per_byte / self.bits_per_byte if math.isfinite(self.bits_per_byte) else 0.0
            spelled = f" and were spelled, which takes {share:.0%} of the bits" if share else ""
            noun = "words" if "tok:words" in self.signature else "tokens"
            said.append(
                f"{self.unseen_rate:.0%} of the {noun} are unknown to the model{spelled}: the text is of "
                "another kind or language than the training text; train on text like this one, or with a "
                "tokenizer that knows every text (bpe or bytes)"
            )
        if costly:
            said.append(
                f"{self.bits_per_byte:.1f} bits per byte are more than the {_STORED} of a file as it is "
                "stored: the model expects something else at almost every place"
            )
        return said

    def to_json(self) -> dict[str, Any]:
        """Return every number; one that is not finite is null, and `explanation` says why."""
        values = asdict(self)
        for name in ("dynamic", "training_text"):
            if values[name] is None:
                del values[name]
        for key, value in values.items():
            if isinstance(value, float) and not math.isfinite(value):
                values[key] = None
        if self.explanation:
            values["explanation"] = self.explanation
        return values

    def rows(self) -> list[tuple[str, str]]:
        """Return names and values as they are shown."""
        return [
            ("bits per byte", show_number(self.bits_per_byte, 4)),
            ("perplexity", show_number(self.perplexity)),
            ("word perplexity", show_number(self.word_perplexity) + self._beside()),
            ("nats per token", show_number(self.nll, 4)),
            ("tokens", f"{self.tokens:,}"),
            ("words", f"{self.words:,}"),
            ("bytes", f"{self.bytes:,}"),
            ("unknown", f"{self.unknown_rate:.2%}" + self._literal()),
            ("lossless", "yes" if self.lossless else "no"),
            *([("dynamic", self.dynamic)] if self.dynamic is not None else []),
            ("seconds", f"{self.seconds:.2f}"),
            ("signature", self.signature),
        ]

    def _beside(self) -> str:
        """Say what word perplexity has and perplexity has not, where there is anything of it."""
        return " (with spelling and layout)" if self.side_bits_per_byte > 0 else ""

    def _literal(self) -> str:
        return f" ({self.literal_rate:.2%} are <unk> in the text)" if self.literal_rate else ""

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        lines = [f"{name:<{width}}  {value}" for name, value in self.rows()]
        return "\n".join([*lines, *([self.explanation] if self.explanation else [])])

    def page(self) -> Page:
        """Return the numbers as a page."""
        made = Page("How well text is predicted")
        made.verdict(True, f"{show_number(self.bits_per_byte, 4)} bits per byte over {self.bytes:,} bytes.")
        made.table(Table(("measure", "value"), tuple(self.rows())))
        if self.explanation:
            made.text(self.explanation)
        return made

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self.rows()
        )
        note = f"<p>{html.escape(self.explanation)}</p>" if self.explanation else ""
        return f"<table>{cells}</table>{note}"

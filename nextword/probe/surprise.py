"""The surprise of every word, -log2 p, in one run or in two side by side.

[XMU "Recap: evaluation of language models": the mean of it]. Words are whitespace words (characters where a
script writes no spaces), so that runs of different tokenizers can be compared: the bits of a word are the sum
over its tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import is_probability
from nextword.core.errors import DataError
from nextword.drawing.coloured import coloured
from nextword.drawing.page import Table
from nextword.probe.result import Figure, ProbeResult, row_of
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject

Array = np.ndarray[Any, np.dtype[Any]]
_TOKENS = 150
_SHOWN = 220  # words


class Surprise:
    """Where a model is surprised, and where another one is not."""

    about = "surprise of each word, of two runs side by side with --against RUN2"
    needs = "models that give probabilities"

    def fits(self, subject: Subject) -> bool:
        """Accept all models that can be asked word by word."""
        return subject.by_word is not None and is_probability(subject.model)

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show the text in colours; with another run also the difference."""
        text = subject.text(settings.tokens or _TOKENS)
        words, own_N = _bits(subject, text)
        parts: list[Figure | Table] = []
        arrays, title = {"bits_N": own_N}, f"The surprise of each word: {subject.name}"
        hot = max(
            1.0, float(np.quantile(own_N[np.isfinite(own_N)], 0.95)) if np.isfinite(own_N).any() else 1.0
        )
        parts.append(_drawn(words, own_N, f"{subject.name}: surprise of each word", (0.0, hot)))
        sentence = f"{subject.name} has {_mean(own_N):.2f} bits per word."
        if against is None:
            parts.append(_table(words, [(subject.name, own_N)]))
        else:
            _, other_N = _bits(against, text)
            arrays["against_N"] = other_N
            parts.append(_drawn(words, other_N, f"{against.name}: surprise of each word", (0.0, hot)))
            parts.append(_difference(words, own_N - other_N, subject.name, against.name))
            parts.append(_table(words, [(subject.name, own_N), (against.name, other_N)]))
            title = f"The surprise of each word: {subject.name} and {against.name}"
            sentence = (
                f"{subject.name} has {_mean(own_N):.2f} bits per word, {against.name} {_mean(other_N):.2f}; "
                f"{_widest(words, own_N - other_N, subject.name, against.name)}"
            )
        return ProbeResult(
            "surprise",
            subject.name,
            title,
            sentence,
            'XMU "Recap: evaluation of language models"',
            arrays,
            {"N": words},
            tuple(parts),
        )


def _bits(subject: Subject, text: str) -> tuple[list[str], Array]:
    assert subject.by_word is not None
    found = subject.by_word(subject.model, subject.tokenizer, text)
    if not found:
        raise DataError(
            "the text is empty, so there is nothing to look at; give at least one word with --text"
        )
    return [word for word, _ in found], np.array([bits for _, bits in found])


def _mean(bits_N: Array) -> float:
    return float(bits_N.mean()) if len(bits_N) else 0.0


def _drawn(words: list[str], bits_N: Array, title: str, limits: tuple[float, float]) -> Figure:
    shown = [f"{word} " for word in words[:_SHOWN]]
    return Figure(
        title, coloured(shown, np.minimum(bits_N, 1e6)[:_SHOWN].tolist(), title, "bits, -log2 p", limits),
        f"The redder a word, the less it was expected; {_mean(bits_N):.2f} bits per word.",
    )  # fmt: skip


def _difference(words: list[str], gap_N: Array, name: str, other: str) -> Figure:
    real = gap_N[np.isfinite(gap_N)]
    most = max(1.0, float(np.quantile(np.abs(real), 0.97)) if len(real) else 1.0)
    title = f"The difference: {name} less {other}"
    shown = [f"{word} " for word in words[:_SHOWN]]
    return Figure(
        title, coloured(shown, gap_N[:_SHOWN].tolist(), title, "bits of difference", (-most, most)),
        f"Red: {name} is the more surprised; blue: {other} is.",
    )  # fmt: skip


def _table(words: list[str], columns: list[tuple[str, Array]]) -> Table:
    cells = np.stack([bits_N for _, bits_N in columns], axis=1).round(2).tolist()
    rows = tuple(row_of(word, values) for word, values in zip(words, cells, strict=True))
    return Table(("word", *(f"bits of {name}" for name, _ in columns)), rows)


def _widest(words: list[str], gap_N: Array, name: str, other: str) -> str:
    gap_N = np.where(np.isfinite(gap_N), gap_N, 0.0)
    least, most = int(np.argmin(gap_N)), int(np.argmax(gap_N))
    return (
        f"{name} gains most at '{words[least]}' ({-gap_N[least]:.1f} bits), {other} at '{words[most]}' "
        f"({gap_N[most]:.1f} bits)."
    )

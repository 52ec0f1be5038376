"""``--model auto``: which model for this much text; it says what it chose and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """A model and the reason for it."""

    model: str
    why: str


def choose() -> Choice:
    """The family for a text: count models are all there is so far, and the best of them is the default."""
    return Choice("ngram", "modified Kneser-Ney predicts best among the count models and trains in one pass")

"""``--model auto``: which model for this much text; it says what it chose and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_OWN_WAY = {"model.smoothing", "model.unknown", "model.kenlm_compat"}


@dataclass(frozen=True)
class Choice:
    """A model and the reason for it."""

    model: str
    why: str


def choose(keys: Iterable[str] = ()) -> Choice:
    """The model for a text, given the settings that were named: count models are all there is so far.

    Modified Kneser-Ney predicts known words best, and Good-Turing tells it how many new ones to
    expect (README: bits per byte of all smoothings). Who names a smoothing gets it as it is.
    """
    if not _OWN_WAY.isdisjoint(keys):
        return Choice("ngram", "the smoothing is yours, and n-grams train in one pass")
    return Choice("ngram-good-turing", "modified Kneser-Ney predicts best where new words are expected, too")

"""``--model auto``: which model for this text and these minutes; it says what it chose and why.

Without minutes: an n-gram, which is made in one pass. With minutes: an n-gram and a neural model on one
tokenizer, mixed with weights from held-out text, and whichever of them does as well alone is kept alone. The
measurements behind the rule are in docs/auto.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from nextword.core.task import Choice

_OWN_WAY = {"model.smoothing", "model.unknown", "model.kenlm_compat"}
_COUNTS = _OWN_WAY | {f"model.{name}" for name in ("order", "prune", "discounts", "alpha", "delta", "eps")}
_ANY = {"train.seed", "train.memory"}
NEURAL = "lstm"  # the neural family that learns most in minutes
LEAST_SECONDS = 12.0  # below, torch is hardly loaded before the time is over


def choose(keys: Iterable[str] = (), minutes: float | None = None) -> Choice:
    """The model for a text, given the settings that were named, and the minutes if there is a number of them.

    Modified Kneser-Ney predicts known words best, and Good-Turing tells it how many new ones to
    expect (README: bits per byte of all smoothings). Who names a smoothing gets it as it is.
    """
    keys = set(keys)
    if not _OWN_WAY.isdisjoint(keys):
        return Choice("ngram", "the smoothing is yours, and n-grams train in one pass")
    counts = Choice(
        "ngram-good-turing", "modified Kneser-Ney predicts best where new words are expected, too"
    )
    if minutes is None:
        return counts
    named = {key for key in keys if key.startswith(("model.", "train."))} - _ANY
    if named:
        family = "ngram" if named <= _COUNTS else NEURAL
        return Choice(family, "the settings named are those of this family")
    if find_spec("torch") is None:
        return Choice(
            counts.model, "neural models need torch, which is not installed: pip install nextword[all]"
        )
    if 60 * minutes < LEAST_SECONDS:
        return Choice(counts.model, f"in less than {LEAST_SECONDS:g} s a neural model learns too little")
    return Choice(
        "mixture",
        f"an n-gram and a neural model ({NEURAL}) err in different places; held-out text weighs them",
        {"model.models": (counts.model, NEURAL), "model.alone": True},
    )

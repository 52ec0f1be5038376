"""``--model auto``: choose a model for the text and the minutes, and say why.

Without minutes: an n-gram, which trains in one pass. With minutes: an n-gram and a neural model on one
tokenizer, mixed with weights from held-out text; if one of them predicts as well alone, it is kept alone. The
measurements behind the rule are in docs/auto.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from nextword.core.catalog import find
from nextword.core.task import Choice

_OWN_WAY = {"model.smoothing", "model.unknown", "model.kenlm_compat"}
_COUNTS = _OWN_WAY | {f"model.{name}" for name in ("order", "prune", "discounts", "alpha", "delta", "eps")}
_ANY = {"train.seed", "train.memory"}
NEURAL = "lstm"  # the neural family that learns most in a few minutes
LEAST_SECONDS = 12.0  # with less, torch is hardly loaded before the time is up


def choose(keys: Iterable[str] = (), minutes: float | None = None) -> Choice:
    """Choose a model, given the settings that the user named, and the minutes if there is a limit.

    Modified Kneser-Ney predicts known words best, and Good-Turing estimates how many new ones to expect
    (README: bits per byte of all smoothings). A smoothing that the user named is used as it is.
    """
    keys = set(keys)
    if not _OWN_WAY.isdisjoint(keys):
        return Choice("ngram", "you chose a smoothing, and n-grams train in one pass")
    counts = Choice(
        "ngram-good-turing", "modified Kneser-Ney predicts best, and Good-Turing allows for new words"
    )
    if minutes is None:
        return counts
    named = {key for key in keys if key.startswith(("model.", "train."))} - _ANY
    if named:
        family = "ngram" if named <= _COUNTS else NEURAL
        return Choice(family, "the settings you gave belong to this family")
    if find_spec("torch") is None:
        return Choice(
            counts.model, "neural models need torch, which is not installed: pip install nextword[all]"
        )
    if 60 * minutes < LEAST_SECONDS:
        return Choice(counts.model, f"in less than {LEAST_SECONDS:g} s a neural model learns too little")
    return Choice(
        "mixture",
        f"an n-gram and a neural model ({NEURAL}) make different errors; held-out text sets their weights",
        {"model.models": (counts.model, NEURAL), "model.alone": True},
    )


def choose_classifier(keys: Iterable[str] = (), minutes: float | None = None) -> Choice:
    """Choose a classifier, given the settings that the user named, and the minutes if there is a limit.

    A linear model and a language model for each label take seconds and are hard to beat on a few thousand
    texts; a network that has minutes makes other mistakes. Held-out texts say how much each of them counts.
    """
    named = {key for key in keys if key.startswith(("model.", "train."))} - _ANY
    for name in ("ensemble", "linear", "generative"):
        own = {f"model.{key}" for key in find("classifier", name).Settings.model_fields}
        if named and named <= own:
            return Choice(name, "the settings you gave belong to this family")
    if named:
        return Choice(NEURAL, "the settings you gave belong to networks")
    quick = ("linear", "generative")
    why = "a linear model and language models of each label take seconds; held-out texts set their weights"
    if minutes is None:
        return Choice("ensemble", why, {"model.models": quick})
    if find_spec("torch") is None:
        why += " (networks need torch, which is not installed: pip install nextword[all])"
        return Choice("ensemble", why, {"model.models": quick})
    if 60 * minutes < LEAST_SECONDS:
        why += f"; in less than {LEAST_SECONDS:g} s a network learns too little"
        return Choice("ensemble", why, {"model.models": quick})
    return Choice(
        "ensemble",
        f"a linear model, language models of each label and a network ({NEURAL}) make different errors; "
        "held-out texts set their weights",
        {"model.models": (*quick, NEURAL)},
    )

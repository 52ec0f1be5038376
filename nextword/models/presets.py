"""Names for a family with settings: what ``--model`` takes besides the families themselves.

A preset is data: the family, the settings that differ from its defaults, and one line about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.models.ladders import LADDERS


@dataclass(frozen=True)
class Preset:
    """A family and what is set in it."""

    name: str
    family: str
    summary: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def _smoothing(name: str, summary: str) -> Preset:
    return Preset(f"ngram-{name}", "ngram", summary, {"model.smoothing": name})


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        _smoothing("mle", "counts divided by counts; zero for what was never seen"),
        _smoothing("add", "a constant added to every count"),
        _smoothing("laplace", "the slide's smoothing towards the unigrams"),
        _smoothing("backoff", "the slide's back-off: drop words while the context is unseen"),
        _smoothing("katz", "Good-Turing discounts; the freed mass goes to shorter contexts"),
        _smoothing("stupid", "relative counts times 0.4 for each step back: a score, not a probability"),
        _smoothing("witten-bell", "new words get weight by how many different words followed the context"),
        _smoothing("absolute", "a constant subtracted from every count"),
        _smoothing("kneser-ney", "absolute discounting, lower orders count contexts instead of tokens"),
        Preset(
            "ngram-good-turing",
            "ngram",
            "modified Kneser-Ney, with room for new words by Good-Turing",
            {"model.unknown": "good-turing"},
        ),
        Preset("ngram-modified-kneser-ney", "ngram", "Kneser-Ney with three discounts, as `ngram` itself"),
        *(
            Preset(f"{family}-{rung.name}", family, rung.about, rung.settings)
            for family, rungs in LADDERS.items()
            for rung in rungs
        ),
    )
}


def names() -> list[str]:
    """Return every name that ``--model`` takes: families, then presets."""
    return [*catalog.names("model"), *PRESETS]


def find(name: str) -> Preset:
    """Return the preset of a name; a family's own name means its defaults."""
    found = name if name in names() else catalog.same_but_case(name, names())
    if found is None:
        raise ConfigError(_unknown(name))
    if found in PRESETS:
        return PRESETS[found]
    return Preset(found, found, "the family with its own defaults")


def _unknown(name: str) -> str:
    """Return the message for a model that does not exist: the nearest, the families, and where sizes are."""
    guess = catalog.nearest(name, ["auto", *names()])
    hint = f"did you mean '{guess}'? " if guess else ""
    families = ", ".join(["auto", *catalog.names("model")])
    return (
        f"unknown model '{name}'; {hint}{'F' if guess else 'f'}amilies: {families}; nextword presets shows "
        f"{len(PRESETS)} more: sizes and smoothings, as in {next(iter(PRESETS))}"
    )

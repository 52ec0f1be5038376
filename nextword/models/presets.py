"""Names for a family with settings: what ``--model`` takes besides the families themselves.

A preset is data: the family, the settings that differ from its defaults, and one line about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.core.suggestions import nearest, same_but_case
from nextword.models.ladders import LADDERS


@dataclass(frozen=True)
class Preset:
    """A family and what is set in it."""

    name: str
    family: str
    summary: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    base: str = ""  # the preset that it is compared with: it changes a few settings of it

    @property
    def changes(self) -> Mapping[str, Any]:
        """Return the settings that differ from those of the base, or all of them."""
        before = modifications()[self.base].settings if self.base else {}
        return {key: value for key, value in self.settings.items() if before.get(key, _MISSING) != value}


_MISSING = object()


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


VANILLA, OF_2017 = "narang/vanilla", "ablations/original"  # what modifications are changes of


@cache
def modifications() -> Mapping[str, Preset]:
    """Return the modifications of the Transformer, which most training runs do not need."""
    from nextword.models.ablations import ABLATIONS, ORIGINAL
    from nextword.models.modern import MODERN
    from nextword.models.modifications import TABLE, language_model

    found = []
    for each in TABLE:
        if each.sets is not None:
            about = f"{each.row} ({each.paper})"
            found.append(_modification(f"narang/{each.name}", about, language_model(each), VANILLA))
    for each in MODERN:
        about = f"{each.name} ({each.paper})"
        found.append(_modification(f"modern/{each.name}", about, language_model(each), VANILLA))
    for each in ABLATIONS:
        about, sets = f"the Transformer of 2017: {each.name}", language_model(each, ORIGINAL)
        found.append(_modification(f"ablations/{each.name}", about, sets, OF_2017))
    return {preset.name: preset for preset in found}


def _modification(name: str, about: str, sets: Mapping[str, Any], base: str) -> Preset:
    return Preset(name, "transformer", about, sets, base if name != base else "")


def names(slot: str = "model") -> list[str]:
    """Return every name that ``--model`` takes for a task: families, then presets."""
    return [*catalog.names(slot), *([*PRESETS, *modifications()] if slot == "model" else ())]


def find(name: str, slot: str = "model") -> Preset:
    """Return the preset of a name; a family's own name means its defaults.

    ``slot``: where a task's families are named. Sizes of a family (``lstm-small``) exist for all tasks.
    """
    found = name if name in names(slot) else same_but_case(name, names(slot))
    known = {**PRESETS, **modifications()} if slot == "model" else {}
    if found in known:
        return known[found]
    if found is not None:
        return Preset(found, found, "the family with its own defaults")
    return _size(name, slot)


def _size(name: str, slot: str) -> Preset:
    """Return a size of a family of another task; raise if there is none of this name."""
    family, _, size = name.lower().rpartition("-")
    if slot != "model" and family in catalog.names(slot):
        for rung in getattr(catalog.find(slot, family), "ladder", ()):
            if rung.name == size:
                return Preset(name, family, rung.about, rung.settings)
    raise ConfigError(_unknown(name, slot))


def _unknown(name: str, slot: str) -> str:
    """Return the message for a model that does not exist: the nearest, the families, and where sizes are."""
    if slot != "model" and name in names():
        allowed = ", ".join(["auto", *catalog.names(slot)])
        return f"'{name}' is a model for another task; models of this one: {allowed}"
    guess = nearest(name, ["auto", *names(slot)])
    hint = f"did you mean '{guess}'? " if guess else ""
    families = ", ".join(["auto", *catalog.names(slot)])
    count = len(PRESETS) + len(modifications())
    more = (
        f"; nextword presets shows {count} more: sizes and smoothings, as in {next(iter(PRESETS))}"
        if slot == "model"
        else ""
    )
    return f"unknown model '{name}'; {hint}{'F' if guess else 'f'}amilies: {families}{more}"

"""``README.md`` of a run: a model card in plain words, after Mitchell et al. 2019.

It warns if a model contains its training text verbatim, as an n-gram does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nextword.core.contracts import LanguageModel, Parametric, is_probability
from nextword.core.display import printable
from nextword.mixtures.family import SavedMixture
from nextword.mixtures.mixture import MixtureSettings
from nextword.ngram.model import NgramModel
from nextword.runs.facts import Facts, summarize
from nextword.runs.settings import RunSettings

_HOLDS = (
    "**This model contains pieces of its training text verbatim**: every sequence of tokens up to its order "
    "is stored. Do not give it to anyone who must not see the text; its files are written so that only their "
    "owner can read them."
)


def card(
    settings: RunSettings,
    model: Any,
    vocabulary: Any,
    facts: Facts,
    metrics: list[dict[str, Any]],
) -> str:
    """Write the whole page."""
    task = settings.find_task()
    found = summarize(metrics, f"valid_{task.deciding(vocabulary)}", task.higher)
    numbers = {name.replace("tokens", task.unit): value for name, value in found.items()}
    data, made_with = facts.data, facts.versions.get("nextword", "")
    sizes = f"{data.bytes:,} bytes, {data.words:,} words"
    if task.unit == "tokens":
        sizes += f", {data.tokens:,} tokens"
    lines = [
        f"# {settings.name}",
        "",
        f"A {task.noun} of the family `{settings.family}`, made with nextword {made_with}.",
        "",
        f"- vocabulary: {task.describe(vocabulary)}",
        f"- trained on: {_names(data.names)}: {sizes}",
        f"- SHA-256 of the text: `{data.sha256}`",
        f"- time: {facts.seconds:,.1f} s, finished {facts.finished}",
        *(f"- {_name(name)}: {value}" for name, value in _described(model).items()),
        *(f"- {_name(name)}: {_number(value)}" for name, value in numbers.items()),
        *_removed(facts),
        *_members(settings, model),
        "",
    ]
    if settings.find_family().holds_text:
        lines += [_HOLDS, ""]
    if not is_probability(model):
        lines += ["Its numbers are scores, not probabilities: they do not sum to one.", ""]
    lines += ["```", *task.usage(), "```", ""]
    return "\n".join(lines)


def _described(model: LanguageModel) -> Mapping[str, Any]:
    found = {"order": str(model.order)} if isinstance(model, NgramModel) else {}
    if isinstance(model, NgramModel) and model.bits:
        found["bits of a probability"] = str(model.bits)
    return found | {"parameters": f"{model.parameters:,}"} if isinstance(model, Parametric) else found


def _removed(facts: Facts) -> list[str]:
    """Return how much probability START and UNKNOWN would have if they were not left out."""
    mass = facts.training.get("removed_mass")
    if not isinstance(mass, float):
        return []
    return [
        f"- probability of START and UNKNOWN, which is removed: {mass:.2g} on average of the held-out text"
    ]


def _members(settings: RunSettings, model: LanguageModel) -> list[str]:
    """List the members of a mixture: runs, and memories with a short description."""
    if not isinstance(settings.model, MixtureSettings):
        return []
    runs, weights = settings.model.runs, settings.model.weights
    phrases = model.told if isinstance(model, SavedMixture) else [""] * len(runs)
    if not runs or len(weights) != len(runs) or len(phrases) != len(runs):
        return []
    named = [
        f"  - `{printable(name).replace('`', '')}`, weight {weight:.3f}{': ' if phrase else ''}{phrase}"
        for name, weight, phrase in zip(runs, weights, phrases, strict=True)
    ]
    return ["- made of:", *named]


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(f"`{printable(name).replace('`', '')}`" for name in names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown or "unknown text"


def _name(name: str) -> str:
    return name.replace("_", " ")


def _number(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else printable(str(value)).replace("\n", " ")

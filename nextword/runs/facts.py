"""What a run says about its training: ``training.json``, and ``README.md``, a model card in plain words.

The facts are what is needed to reproduce the run: seed, versions, data, command and machine. The card is
after Mitchell et al. 2019; it warns if a model contains its training text verbatim, as an n-gram does.
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from nextword.core.contracts import LanguageModel, Parametric, is_probability
from nextword.core.display import printable
from nextword.data.encode import DataFacts
from nextword.mixtures.family import SavedMixture
from nextword.mixtures.mixture import MixtureSettings
from nextword.ngram.model import NgramModel
from nextword.runs.settings import RunSettings

_PACKAGES = ("nextword", "numpy", "numba", "tokenizers", "pydantic")
_NEURAL = ("torch", "safetensors")
_HOLDS = (
    "**This model contains pieces of its training text verbatim**: every sequence of tokens up to its order "
    "is stored. Do not give it to anyone who must not see the text; its files are written so that only their "
    "owner can read them."
)


@dataclass(frozen=True)
class Facts:
    """Seed, versions, data, command and machine of a training run."""

    seed: int = 0
    data: DataFacts = field(default_factory=DataFacts)
    seconds: float = 0.0
    finished: str = ""
    command: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)  # steps, plan, threads and so on of a network

    def to_json(self) -> dict[str, Any]:
        """Return the facts as they are written to the file."""
        return asdict(self)


def collect(seed: int, data: DataFacts, seconds: float, training: dict[str, Any] | None = None) -> Facts:
    """Collect the facts of a training run that has just finished; ``training``: those of a network."""
    packages = (*_PACKAGES, *(_NEURAL if training else ()))
    return Facts(
        seed=seed,
        data=data,
        seconds=round(seconds, 3),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        command=shlex.join([os.path.basename(sys.argv[0] or "python"), *sys.argv[1:]]),
        versions={"python": platform.python_version(), **{name: _version(name) for name in packages}},
        machine={"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count() or 1},
        training=training or {},
    )


def from_json(value: Any) -> Facts:
    """Read the facts of a saved run; missing and unknown ones are ignored."""
    values = value if isinstance(value, dict) else {}
    known = {name: values[name] for name in Facts.__dataclass_fields__ if name in values}
    data = known.pop("data", None)
    names = DataFacts.__dataclass_fields__
    given = {name: data[name] for name in names if name in data} if isinstance(data, dict) else {}
    if isinstance(given.get("names"), list):
        given["names"] = tuple(str(name) for name in given["names"])
    return Facts(data=DataFacts(**given), **known)


def _version(package: str) -> str:
    """Return the version; that of a loaded torch, which knows its build (``2.13.0+cpu``), from itself."""
    if package == "torch" and package in sys.modules:
        return str(sys.modules[package].__version__)
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


_LAST = ("loss", "tokens_per_second")  # values of the last training row that a summary has


def summarize(
    metrics: Iterable[dict[str, Any]], decides: str = "valid_nll", higher: bool = False
) -> dict[str, Any]:
    """Summarize metrics: the last training row, the best validation, and all rows without a step.

    ``decides``: the measure that decides which is best; ``higher``: whether more of it is better.
    """
    steps = 0
    last: dict[str, Any] = {}
    best: dict[str, Any] = {}
    other: dict[str, Any] = {}
    for row in metrics:
        steps = max(steps, row.get("step", 0))
        if "step" not in row:
            other |= row
        elif decides in row:
            best = row if not best or _cost(row[decides], higher) < _cost(best[decides], higher) else best
        else:
            last = row
    summary = {"steps": steps} if steps else {}
    summary |= {name: last[name] for name in _LAST if name in last}
    validated = {name: value for name, value in best.items() if name.startswith("valid_")}
    return summary | validated | ({"best_step": best["step"]} if best else {}) | other


def _cost(value: float | None, higher: bool) -> float:
    return float("inf") if value is None else -float(value) if higher else float(value)


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
        *(
            f"- {_name(name)}: {_number(value)}"
            for name, value in numbers.items()
            if not isinstance(value, dict)
        ),
        *_removed(facts),
        *_members(settings, model),
        "",
    ]
    if settings.find_family().holds_text:
        lines += [_HOLDS, ""]
    if not is_probability(model):
        lines += ["Its numbers are scores, not probabilities: they do not sum to one.", ""]
    lines += ["```", *task.usage(settings), "```", ""]
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

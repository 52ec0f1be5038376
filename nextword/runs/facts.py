"""``training.json``: what is needed to reproduce a run: seed, versions, data, command and machine."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from nextword.data.encode import DataFacts

_PACKAGES = ("nextword", "numpy", "numba", "tokenizers", "pydantic")
_NEURAL = ("torch", "safetensors")


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

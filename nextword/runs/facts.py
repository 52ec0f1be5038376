"""``training.json``: what one needs to know to make the run again, and on what it was made."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from nextword.data.encode import DataFacts

_PACKAGES = ("nextword", "numpy", "numba", "tokenizers", "pydantic")
_NEURAL = ("torch", "safetensors")


@dataclass(frozen=True)
class Facts:
    """Seed, versions, data, command and machine of one training."""

    seed: int = 0
    data: DataFacts = field(default_factory=DataFacts)
    seconds: float = 0.0
    finished: str = ""
    command: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)  # steps, plan, threads and so on of a neural one

    def to_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        return asdict(self)


def collect(seed: int, data: DataFacts, seconds: float, training: dict[str, Any] | None = None) -> Facts:
    """The facts of a training that has just ended; ``training``: what a neural one tells of itself."""
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
    """The facts of a saved run; what is missing or foreign is left out."""
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

"""Every run of a folder at a glance: settings, learning curve and time left, without loading a model.

Finished runs, training runs that are under way, and unfinished ones that can be resumed. What cannot be read
is reported with its reason; the other runs are not affected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from nextword.core import config
from nextword.core.errors import NextwordError
from nextword.runs.saved import CONFIG, METRICS, TRAINING
from nextword.store.live import Running, running
from nextword.store.manifest import MANIFEST, read_manifest
from nextword.store.unfinished import checkpoints_in

SAMPLES = 20  # texts of a run, at most
_LONG = 2000  # characters of a text
POINTS = 300  # of a curve, at most: more than a screen can show
_MOST = 64 << 20  # bytes of a file that are read
_REMEMBERED = 512  # runs whose files are not read again while they stay the same
_CURVES = ("loss", "valid_bits_per_byte", "valid_nll", "valid_accuracy", "valid_f1")


@dataclass(frozen=True)
class Overview:
    """One run, ready to be shown."""

    name: str
    state: Literal["finished", "running", "unfinished", "damaged"]
    model: str = ""
    task: str = "lm"
    tokenizer: str = ""
    created: int = 0  # nanoseconds since 1970
    seconds: float | None = None  # that training took, or has taken so far
    tokens: int | None = None  # trained on so far; of a count model: counted
    seconds_left: float | None = None
    steps: tuple[int, int | None] | None = None  # done, and expected in total
    settings: dict[str, str] = field(default_factory=dict)
    curves: dict[str, list[list[float]]] = field(default_factory=dict)  # name: [seconds, tokens, value]
    samples: list[dict[str, Any]] = field(default_factory=list)  # what it wrote: step, seconds, text
    command: str = ""
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def overview(folder: Path) -> list[Overview]:
    """Return all runs of a folder, sorted by name."""
    under_way = {each.target.name: each for each in running(folder)}
    try:
        names = sorted({path.name for path in folder.iterdir() if not path.name.startswith(".")})
    except OSError:
        names = []
    found = [
        _running(under_way[name]) if name in under_way else _found(folder / name)
        for name in sorted({*names, *under_way})
    ]
    return [each for each in found if each is not None]


def _found(path: Path) -> Overview | None:
    """Return a finished or unfinished run; None if the folder is not a run."""
    try:
        if (path / MANIFEST).is_file():
            return _finished(path, _stamp(path / MANIFEST), _stamp(path / METRICS))
        checkpoints = checkpoints_in(path)
        return _unfinished(checkpoints[-1], path.name) if checkpoints else None
    except (NextwordError, OSError, ValueError, TypeError, RecursionError) as error:
        said = str(error) if isinstance(error, NextwordError) else "its files cannot be read"
        return Overview(path.name, "damaged", problem=said)


@lru_cache(_REMEMBERED)
def _finished(path: Path, *stamps: tuple[int, int]) -> Overview:
    """Read a run; ``stamps`` change when its files do."""
    rows = _rows(path / METRICS)
    facts: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        facts = json.loads(_text(path / TRAINING))
    data, training = _part(facts, "data"), _part(facts, "training")
    made = _described(path, Overview(path.name, "finished", created=read_manifest(path).created))
    tokens = training.get("tokens", data.get("tokens"))
    return replace(
        made, curves=curves(rows), samples=samples(rows), seconds=_number(facts.get("seconds")),
        tokens=_whole(tokens),
        command=str(facts.get("command", ""))[:2000], steps=_steps(rows, None),
    )  # fmt: skip


def _running(run: Running) -> Overview:
    last = run.last
    made = _described(run.folder, Overview(run.target.name, "running"))
    return replace(
        made, curves=curves(run.rows), samples=samples(run.rows), seconds=_number(last.get("seconds")),
        tokens=_whole(last.get("tokens")), seconds_left=_number(last.get("seconds_left")),
        steps=_steps([last], _whole(last.get("steps"))),
    )  # fmt: skip


def _unfinished(checkpoint: Path, name: str) -> Overview:
    rows = _rows(checkpoint / METRICS)
    made = _described(checkpoint, Overview(name, "unfinished"))
    last = max((row for row in rows if "step" in row), key=lambda row: row["step"], default={})
    return replace(
        made, curves=curves(rows), samples=samples(rows), seconds=_number(last.get("seconds")),
        tokens=_whole(last.get("tokens")), steps=_steps(rows, None),
    )  # fmt: skip


def _described(path: Path, run: Overview) -> Overview:
    """Add the settings, where they are written already."""
    try:
        text = _text(path / CONFIG)
    except OSError:
        return run
    flat = config.flatten(config.parse_toml(text, CONFIG))
    return replace(
        run,
        model=str(flat.get("name", flat.get("family", ""))),
        task=str(flat.get("task", "lm")),
        tokenizer=str(flat.get("text.tokenizer", "")),
        settings={key: config.shown(value) for key, value in flat.items() if "." in key},
    )


def curves(rows: Iterable[dict[str, Any]]) -> dict[str, list[list[float]]]:
    """Collect points [seconds, tokens, value] of the training loss and of what was measured."""
    found: dict[str, list[list[float]]] = {}
    for row in rows:
        seconds, tokens = _number(row.get("seconds")), _number(row.get("tokens"))
        for name in _CURVES:
            value = _number(row.get(name))
            if value is not None and seconds is not None and tokens is not None:
                found.setdefault(name, []).append([seconds, tokens, value])
    return {name: thinned(points) for name, points in found.items()}


def samples(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Collect what a network wrote while it learned, the latest first."""
    wrote = [row for row in rows if isinstance(row.get("sample"), str)][-SAMPLES:]
    return [
        {"step": _whole(row.get("step")), "seconds": _number(row.get("seconds")),
         "text": row["sample"][:_LONG]}
        for row in reversed(wrote)
    ]  # fmt: skip


def thinned(points: list[list[float]], most: int = POINTS) -> list[list[float]]:
    """Return the means of neighbours where there are more points than can be shown; the last one stays."""
    if len(points) <= most:
        return points
    size = -(-len(points) // (most - 1))
    groups = [points[at : at + size] for at in range(0, len(points) - 1, size)]
    means = [[sum(values) / len(group) for values in zip(*group, strict=True)] for group in groups]
    return means + points[-1:]


def _rows(path: Path) -> list[dict[str, Any]]:
    """Read rows; a line that is not one is skipped."""
    found = []
    with suppress(OSError):
        for line in _text(path).split("\n"):
            with suppress(ValueError, RecursionError):
                row = json.loads(line)
                found += [row] if isinstance(row, dict) else []
    return found


def _text(path: Path) -> str:
    with open(path, "rb") as file:
        return file.read(_MOST).decode("utf-8", "replace")


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_ino)


def _steps(rows: Iterable[dict[str, Any]], expected: int | None) -> tuple[int, int | None] | None:
    done = max((step for row in rows if (step := _whole(row.get("step"))) is not None), default=None)
    return None if done is None else (done, expected)


def _part(facts: Any, name: str) -> dict[str, Any]:
    part = facts.get(name) if isinstance(facts, dict) else None
    return part if isinstance(part, dict) else {}


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 else None


def _whole(value: Any) -> int | None:
    found = _number(value)
    return None if found is None else int(found)

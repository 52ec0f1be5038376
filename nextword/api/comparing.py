"""``compare`` and ``lab``: families side by side, and the lectures' experiments."""

from __future__ import annotations

import ast
import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nextword.api.events import quietly
from nextword.core import catalog, config
from nextword.core.events import Event


@dataclass(frozen=True)
class Order:
    """What somebody asked `compare` for."""

    data: tuple[str, ...] = ()
    models: Sequence[str] = ()
    valid: tuple[str, ...] = ()
    tokenizer: str | Sequence[str] | None = None  # several: every model with each
    minutes: float | None = None  # for each model
    seeds: int = 1  # runs of each model that draws random numbers
    sets: Mapping[str, Any] | Sequence[str] = ()
    out: str | os.PathLike[str] | None = None


def compare(
    *data: str | os.PathLike[str],
    models: str | Sequence[str] = (),
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the interface's name
    **order: Any,
) -> Any:
    """Train several models on one split and measure them; further keywords are those of the command line."""
    names = models.split(",") if isinstance(models, str) else models
    texts = tuple(os.fspath(name) for name in data)
    return quietly(comparing(Order(data=texts, models=tuple(names), sets=dict(set or {}), **order)))


def comparing(order: Order) -> Iterator[Event]:
    """`compare` with its progress; the last event holds the comparison."""
    from nextword.comparison.compare import compare as run
    from nextword.comparison.setup import enter

    sets = order.sets if isinstance(order.sets, Mapping) else config.parse_sets(order.sets)
    contest = enter(
        order.data,
        order.models,
        valid=order.valid,
        tokenizer=_list(order.tokenizer),
        sets=sets,
        out=order.out,
        minutes=order.minutes,
        seeds=order.seeds,
    )
    yield from run(contest)


def _list(names: str | Sequence[str] | None) -> list[str]:
    """``words,bpe`` as two."""
    parts = names.split(",") if isinstance(names, str) else names or ()
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def lab(
    name: str,
    run: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    quick: bool = False,
) -> Any:
    """Run an experiment, or "all" of them; returns what it found. ``quick``: fewer steps and seeds."""
    return quietly(experimenting(name, run=run, out=out, quick=quick))


def experimenting(
    name: str,
    *,
    run: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    quick: bool = False,
) -> Iterator[Event]:
    """`lab` with its progress; the last event holds the finding."""
    from nextword.experiments import everything

    experiment: Any = everything.run_all if name == everything.NAME else catalog.find("lab", name)
    events: Iterator[Event] = experiment(
        out=None if out is None else os.fspath(out), run=None if run is None else os.fspath(run), quick=quick
    )
    yield from events


def experiments() -> list[dict[str, Any]]:
    """Every experiment, and what it is about."""
    rows = []
    for name in catalog.names("lab"):
        rows.append({"name": name, "about": _about(catalog.find_path("lab", name).partition(":")[0])})
    return rows


def _about(module: str) -> str:
    """The first line of a file; nothing is imported, since most experiments need torch."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return ""
    if found is None or found.origin is None:
        return ""
    with open(found.origin, encoding="utf-8") as file:
        text = ast.get_docstring(ast.parse(file.read())) or ""
    return text.partition("\n")[0]

"""``compare`` and ``lab``: families side by side, and the lectures' experiments."""

from __future__ import annotations

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
    from nextword.bench.compare import compare as run
    from nextword.bench.contest import enter

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
    name: str, run: str | os.PathLike[str] | None = None, out: str | os.PathLike[str] | None = None
) -> Any:
    """Run an experiment; returns what it found."""
    return quietly(experimenting(name, run=run, out=out))


def experimenting(
    name: str, *, run: str | os.PathLike[str] | None = None, out: str | os.PathLike[str] | None = None
) -> Iterator[Event]:
    """`lab` with its progress; the last event holds the finding."""
    experiment = catalog.find("lab", name)
    events: Iterator[Event] = experiment(
        out=None if out is None else os.fspath(out), run=None if run is None else os.fspath(run)
    )
    yield from events


def experiments() -> list[dict[str, Any]]:
    """Every experiment, and what it is about."""
    rows = []
    for name in catalog.names("lab"):
        about = (catalog.find_module("lab", name).__doc__ or "").strip().partition("\n")[0]
        rows.append({"name": name, "about": about})
    return rows

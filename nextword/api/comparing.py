"""``compare`` and ``lab``: families side by side, and the lectures' experiments."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from nextword.api.events import quietly
from nextword.core import catalog
from nextword.core.events import Event


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

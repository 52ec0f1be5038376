"""``lab``: the experiments of the lectures."""

from __future__ import annotations

import ast
import importlib.util
import os
from collections.abc import Iterator
from typing import Any

from nextword.api.arguments import checked
from nextword.core import catalog
from nextword.core.events import Event, result_of


@checked
def lab(
    name: str,
    run: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    quick: bool = False,
) -> Any:
    """Run an experiment, or "all" of them, and return the result. ``quick``: fewer steps and seeds.

    >>> nextword.lab("sums-to-one", quick=True).name
    'sums-to-one'
    """
    return result_of(experimenting(name, run=run, out=out, quick=quick))


def experimenting(
    name: str,
    *,
    run: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    quick: bool = False,
) -> Iterator[Event]:
    """Run `lab` and yield its progress; the last event holds the result."""
    from nextword.experiments import durations, everything

    experiment: Any = everything.run_all if name == everything.NAME else catalog.find("lab", name)
    events: Iterator[Event] = experiment(
        out=None if out is None else os.fspath(out), run=None if run is None else os.fspath(run), quick=quick
    )
    if run is None and not quick:
        yield from durations.announce(catalog.names("lab") if name == everything.NAME else [name])
    yield from events


def experiments() -> list[dict[str, Any]]:
    """List every experiment and what it is about."""
    rows = []
    for name in catalog.names("lab"):
        rows.append({"name": name, "about": _about(catalog.find_path("lab", name).partition(":")[0])})
    return rows


def _about(module: str) -> str:
    """Read the first line of a file without importing it, since most experiments need torch."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return ""
    if found is None or found.origin is None:
        return ""
    with open(found.origin, encoding="utf-8") as file:
        text = ast.get_docstring(ast.parse(file.read())) or ""
    return text.partition("\n")[0]

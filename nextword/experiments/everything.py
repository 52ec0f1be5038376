"""All experiments on one page, in the lectures' order: slide, claim, verdict, picture, command.

One that fails does not stop the others: the page says why it is missing.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nextword.core import catalog
from nextword.core.errors import NextwordError
from nextword.core.events import Done, Event, Note, Stage
from nextword.drawing.page import Page, Table
from nextword.experiments.finding import RULE
from nextword.experiments.fitting import DoesNotFit
from nextword.experiments.result import ExperimentResult, add, command_line
from nextword.store.names import RUNS

PAGE = "all.html"
NAME = "all"  # their name on the command line


@dataclass(frozen=True)
class Everything:
    """The results of all experiments; shown as a table, or as the page in a notebook."""

    findings: tuple[ExperimentResult, ...]
    failed: dict[str, str] = field(default_factory=dict)
    path: Path | None = None
    quick: bool = False

    def table(self) -> Table:
        """Make one row per experiment."""
        rows = [(each.name, str(each.verdict), each.sentence) for each in self.findings]
        rows += [(name, "failed", why) for name, why in self.failed.items()]
        return Table(("experiment", "verdict", "found"), tuple(rows))

    def page(self) -> Page:
        """Return the lecturer's page."""
        page = Page("The lectures' claims, measured")
        page.text(
            "Every section has a slide, its claim, a verdict for each part, pictures of what was measured, "
            "and the command that reproduces it. The numbers are below each picture."
        )
        page.text(RULE, soft=True)
        if self.quick:
            page.text("A quick run with few steps and seeds: what it cannot tell is left open.")
        page.table(self.table())
        for each in self.findings:
            page.heading(each.title)
            page.text(f"Slide: {each.slide}", soft=True)
            page.text(f"Claim: {each.claim}")
            each.add_verdict(page)
            page.text(each.method, soft=True)
            for part in each.pictures:
                add(page, part)
            page.parts.append(command_line(each.command))
        for name, why in self.failed.items():
            page.heading(name)
            page.verdict(False, f"could not run: {why}")
            page.parts.append(command_line(f"nextword lab {name}"))
        return page

    def __str__(self) -> str:
        summary = [str(self.table())]
        summary += [f"{each.name}: {each.judged()}" for each in self.findings]
        return "\n\n".join([*summary, f"page: {self.path}"])

    def to_json(self) -> dict[str, Any]:
        """Return every number of every experiment."""
        return {
            "findings": [each.to_json() for each in self.findings],
            "failed": self.failed,
            "path": None if self.path is None else str(self.path),
        }

    def _repr_html_(self) -> str:
        return self.page().fragment()


def run_all(
    out: str | os.PathLike[str] | None = None,
    run: str | None = None,
    quick: bool = False,
    names: tuple[str, ...] = (),
) -> Iterator[Event]:
    """Run every experiment (or those named); a run is used by those that it fits."""
    folder = RUNS / "lab" if out is None else Path(out)
    found: list[ExperimentResult] = []
    failed: dict[str, str] = {}
    chosen = names or tuple(catalog.names("lab"))
    for number, name in enumerate(chosen, start=1):
        yield Note(f"experiment {number} of {len(chosen)}: {name}")
        try:
            found.append((yield from _one(name, str(folder), run, quick)))
        except NextwordError as error:
            failed[name] = str(error)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
        if name in failed:
            yield Note(f"{name} failed: {failed[name]}")
    everything = Everything(tuple(found), failed, quick=quick)
    path = everything.page().save(folder / PAGE)
    yield Done(replace(everything, path=path))


def _one(name: str, out: str, run: str | None, quick: bool) -> Generator[Event, None, ExperimentResult]:
    """Run one experiment, its stages prefixed by its name; a run that does not fit is left out."""
    experiment = catalog.find("lab", name)
    try:
        return (yield from _followed(name, experiment(out=out, run=run, quick=quick)))
    except DoesNotFit:
        return (yield from _followed(name, experiment(out=out, run=None, quick=quick)))


def _followed(name: str, events: Iterator[Event]) -> Generator[Event, None, ExperimentResult]:
    finding: ExperimentResult | None = None
    for event in events:
        if isinstance(event, Done):
            finding = event.result
        elif isinstance(event, Stage):
            yield replace(event, name=f"{name}: {event.name}")
        else:
            yield event
    assert finding is not None, "the last event is Done(ExperimentResult)"
    return finding

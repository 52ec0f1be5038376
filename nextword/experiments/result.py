"""The result of an experiment: the claim, tables and pictures, and one sentence whether it held."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nextword.core.events import Done, Event
from nextword.drawing.page import Cell, Page, Table
from nextword.experiments.blanks import Exercise
from nextword.store.names import RUNS


@dataclass(frozen=True)
class Chart:
    """A drawing with a caption, and its numbers."""

    svg: str
    caption: str
    table: Table | None = None


Part = str | Table | Chart | Exercise


@dataclass(frozen=True)
class ExperimentResult:
    """The result of an experiment; it prints as text and has a page for notebooks."""

    name: str
    title: str
    slide: str  # deck and slide title
    claim: str
    holds: bool
    sentence: str
    parts: tuple[Part, ...]
    path: Path | None = None  # the page it was written to

    @property
    def command(self) -> str:
        """The command that reproduces it."""
        return f"nextword lab {self.name}"

    def page(self) -> Page:
        """Return the one-file report."""
        page = Page(self.title)
        page.text(f"Claim [{self.slide}]: {self.claim}")
        page.verdict(self.holds, f"{self.verdict}: {self.sentence}")
        for part in self.parts:
            add(page, part)
        page.parts.append(command_line(self.command))
        return page

    @property
    def verdict(self) -> str:
        """The verdict in one to three words."""
        return "held" if self.holds else "did not hold"

    @property
    def pictures(self) -> tuple[Part, ...]:
        """The drawings; the tables, where nothing is drawn."""
        drawn = tuple(part for part in self.parts if isinstance(part, Chart))
        return drawn or tuple(part for part in self.parts if isinstance(part, Table))

    def __str__(self) -> str:
        summary = [f"{self.title}\nclaim [{self.slide}]: {self.claim}"]
        for part in self.parts:
            if isinstance(part, (Table, Exercise)):
                summary.append(str(part))
            elif isinstance(part, Chart) and part.table is not None:
                summary.append(str(part.table) if part.table.title else f"{part.caption}\n{part.table}")
        summary.append(f"{self.verdict}: {self.sentence}")
        if self.path is not None:
            summary.append(f"picture: {self.path}")
        return "\n\n".join(summary)

    def to_json(self) -> dict[str, Any]:
        """Return every number, without the pictures."""
        tables = [part.table if isinstance(part, Chart) else part for part in self.parts]
        return {
            "name": self.name,
            "slide": self.slide,
            "claim": self.claim,
            "holds": self.holds,
            "sentence": self.sentence,
            "tables": [{"title": t.title, "rows": t.to_json()} for t in tables if isinstance(t, Table)],
            "path": None if self.path is None else str(self.path),
        }

    def _repr_html_(self) -> str:
        return self.page().fragment()


def add(page: Page, part: Part) -> None:
    """Add one part of a result to a page."""
    if isinstance(part, str):
        page.text(part)
    elif isinstance(part, Table):
        page.table(part)
    elif isinstance(part, Exercise):
        page.parts.append(part.html())
    else:
        name = re.search(r'aria-label="([^"]*)"', part.svg)
        page.parts.append(f"<p><b>{name[1]}</b></p>" if name else "")  # already as a page needs it
        page.picture(part.svg, part.caption, part.table)


def cells(name: str, values: Iterable[float]) -> tuple[Cell, ...]:
    """Return a row of a table: a name and its numbers."""
    found: list[Cell] = [name]
    found.extend(float(value) for value in values)
    return tuple(found)


def command_line(command: str) -> str:
    """Return a command as a page shows it."""
    return f'<p class="soft">reproduce it: <code>{command}</code></p>'


def finish(finding: ExperimentResult, out: str | os.PathLike[str] | None) -> Iterator[Event]:
    """Write the page to ``out/NAME.html`` and end with the finding."""
    folder = RUNS / "lab" if out is None else Path(out)
    path = finding.page().save(folder / f"{finding.name}.html")
    yield Done(replace(finding, path=path))

"""What an experiment found: the claim, tables and pictures, and one sentence whether it held."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nextword.core.events import Done, Event
from nextword.core.runnames import RUNS
from nextword.evaluate.page import Page, Table


@dataclass(frozen=True)
class Picture:
    """A drawing with a caption, and its numbers."""

    svg: str
    caption: str
    table: Table | None = None


@dataclass(frozen=True)
class Finding:
    """The result of an experiment; it prints as text and shows itself in notebooks."""

    name: str
    title: str
    slide: str  # deck and slide title
    claim: str
    holds: bool
    sentence: str
    parts: tuple[str | Table | Picture, ...]
    path: Path | None = None  # the page it was written to

    def page(self) -> Page:
        """The one-file report."""
        page = Page(self.title)
        page.text(f"Claim [{self.slide}]: {self.claim}")
        page.verdict(self.holds, self.sentence)
        for part in self.parts:
            if isinstance(part, str):
                page.text(part)
            elif isinstance(part, Table):
                page.table(part)
            else:
                page.picture(part.svg, part.caption, part.table)
        return page

    def __str__(self) -> str:
        told = [f"{self.title}\nclaim [{self.slide}]: {self.claim}"]
        for part in self.parts:
            table = part.table if isinstance(part, Picture) else part
            if isinstance(part, Picture) and part.table is not None and not part.table.title:
                told.append(f"{part.caption}\n{table}")
            elif table is not None:
                told.append(str(table))
        told.append(f"{'held' if self.holds else 'did not hold'}: {self.sentence}")
        if self.path is not None:
            told.append(f"picture: {self.path}")
        return "\n\n".join(told)

    def to_json(self) -> dict[str, Any]:
        """Every number, without the pictures."""
        tables = [part.table if isinstance(part, Picture) else part for part in self.parts]
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


def finish(finding: Finding, out: str | os.PathLike[str] | None) -> Iterator[Event]:
    """Write the page to ``out/NAME.html`` and end with the finding."""
    folder = RUNS / "lab" if out is None else Path(out)
    path = finding.page().save(folder / f"{finding.name}.html")
    yield Done(replace(finding, path=path))

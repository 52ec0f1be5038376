"""The result of an experiment: the claim, a headline, a verdict for each part of it, tables and pictures."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nextword.core.display import markup
from nextword.core.events import Done, Event
from nextword.drawing.page import Cell, Page, Table
from nextword.experiments.blanks import Exercise
from nextword.experiments.finding import QUICK, Finding, Verdict, overall
from nextword.store.names import RUNS

LONGEST = 15  # words of a headline


@dataclass(frozen=True)
class Chart:
    """A drawing with a caption, and its numbers."""

    svg: str
    caption: str
    table: Table | None = None


Part = str | Table | Chart | Exercise


@dataclass(frozen=True)
class ExperimentResult:
    """The result of an experiment; it prints as text and has a page for notebooks.

    The verdict of the whole is never set: it follows from the findings.
    """

    name: str
    title: str
    slide: str  # deck and slide title
    claim: str
    summary: str  # what was found, in at most `LONGEST` words
    findings: tuple[Finding, ...]
    method: str  # how it was measured, and on what
    parts: tuple[Part, ...]
    path: Path | None = None  # the page it was written to

    def __post_init__(self) -> None:
        assert self.findings, "an experiment judges every part of its claim"
        assert len(self.headline.split()) <= LONGEST, f"more than {LONGEST} words: {self.headline}"

    def __repr__(self) -> str:
        return f"<ExperimentResult {self.name}: {self.verdict}>"

    @property
    def command(self) -> str:
        """The command that reproduces it."""
        return f"nextword lab {self.name}"

    @property
    def verdict(self) -> Verdict:
        """The verdict of the whole claim."""
        return overall(self.findings)

    @property
    def holds(self) -> bool:
        """Whether every part held, if need be with a slip of the slide corrected."""
        return self.verdict in (Verdict.HELD, Verdict.CORRECTED)

    @property
    def headline(self) -> str:
        """What was found, in a few words; of a quick run that leaves something open, only that."""
        is_open = any(each.measured == QUICK for each in self.findings)
        return f"{QUICK}; run {self.command} in full" if is_open else self.summary

    @property
    def sentence(self) -> str:
        """The headline as a sentence."""
        return f"{self.headline}."

    def page(self) -> Page:
        """Return the one-file report."""
        page = Page(self.title)
        page.text(f"Claim [{self.slide}]: {self.claim}")
        self.add_verdict(page)
        page.text(self.method, soft=True)
        for part in self.parts:
            add(page, part)
        page.parts.append(command_line(self.command))
        return page

    def add_verdict(self, page: Page) -> None:
        """Add the verdict of the whole, then a table of the parts of the claim."""
        is_good = True if self.holds else False if self.verdict is Verdict.FAILED else None
        page.verdict(is_good, f"{self.verdict}: {self.sentence}")
        rows = "".join(
            f"<tr><td>{markup(each.claim)}</td><td><b>{markup(each.verdict)}</b></td>"
            f"<td>{markup(each.measured)}</td></tr>"
            for each in self.findings
        )
        heads = "<tr><th>part of the claim</th><th>verdict</th><th>measured</th></tr>"
        page.parts.append(f'<div class="wide"><table class="findings">{heads}{rows}</table></div>')

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
        summary.append(self.judged())
        summary.append(f"method: {self.method}")
        if self.path is not None:
            summary.append(f"picture: {self.path}")
        return "\n\n".join(summary)

    def judged(self) -> str:
        """Return the verdict, the headline and the parts of the claim, one per line."""
        parts = "".join(f"\n  {each}" for each in self.findings)
        return f"{self.verdict}: {self.sentence}{parts}"

    def to_json(self) -> dict[str, Any]:
        """Return every number, without the pictures."""
        tables = [part.table if isinstance(part, Chart) else part for part in self.parts]
        return {
            "name": self.name,
            "slide": self.slide,
            "claim": self.claim,
            "holds": self.holds,
            "verdict": str(self.verdict),
            "sentence": self.sentence,
            "findings": [
                {"claim": each.claim, "verdict": str(each.verdict), "measured": each.measured}
                for each in self.findings
            ],
            "method": self.method,
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

"""``nextword compare``: models on one split and one scale, as a table and a one-file report.

Bits per byte rank models of any tokenizer; a score that is no probability (`stupid`) is shown and not ranked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nextword.bench.contest import Contest, split_note
from nextword.bench.growth import Growth, growth
from nextword.bench.report import page
from nextword.bench.rows import Row, keep, kept, key_of, ranked
from nextword.bench.runner import run_one
from nextword.core.events import Done, Event, Measure, Note
from nextword.evaluate.page import Table

REPORT = "report.html"


@dataclass(frozen=True)
class Comparison:
    """The rows, the best first, and the report they were written to."""

    rows: list[Row]
    growth: Growth | None
    report: Path
    about: str

    @property
    def best(self) -> str:
        """The run that predicts best."""
        first = next((row for row in self.rows if row.ranks and row.run), None)
        return str(self.report.parent / first.run) if first else "latest"

    def to_json(self) -> dict[str, Any]:
        """Every number."""
        orders = None
        if self.growth is not None:
            orders = {
                "unseen": [each.unseen for each in self.growth.facts],
                "ngrams": [each.grams for each in self.growth.facts],
                "bytes": [each.bytes for each in self.growth.facts],
                "perplexity": self.growth.perplexities,
            }
        return {
            "about": self.about,
            "report": str(self.report),
            "models": [row.to_json() for row in self.rows],
            "by_order": orders,
        }

    def __str__(self) -> str:
        shown = [row.shown() for row in self.rows]
        columns = tuple(shown[0]) if shown else ()
        return str(Table(columns, tuple(tuple(row.values()) for row in shown)))

    def _repr_html_(self) -> str:
        return page(self.rows, self.growth, self.about).fragment()


def compare(contest: Contest) -> Iterator[Event]:
    """Train and measure every model that is not finished yet; the last event is ``Done(Comparison)``."""
    rows: list[Row] = []
    for settings in contest.entries:
        key = key_of(settings, contest.digest)
        row = kept(contest.out, settings.name, key)
        if row is not None:
            yield Note(f"{settings.name} was finished before; its row is kept")
        else:
            row = yield from run_one(contest, settings, key)
            if row.run:
                keep(contest.out, row)
        rows.append(row)
        yield Measure(row.to_json())
    found = yield from growth(contest)
    about = split_note(contest)
    models = ranked(rows)
    path = page(models, found, about).save(contest.out / REPORT)
    yield Done(Comparison(models, found, path, about))

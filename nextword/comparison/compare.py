"""``nextword compare``: models on one split and one scale, as a table and a one-file report.

Bits per byte rank models of any tokenizer; a score that is not a probability (`stupid`) is not ranked.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nextword.comparison.entries import Entry
from nextword.comparison.growth import Growth, growth
from nextword.comparison.mixed import mix_one, parts_of
from nextword.comparison.progress import RunPace
from nextword.comparison.ranking import RankedModel, differences, few_seeds, rank, table
from nextword.comparison.report import page
from nextword.comparison.rows import Row, keep, kept, key_of, ranked
from nextword.comparison.runner import run_one
from nextword.comparison.setup import Setup, split_note
from nextword.comparison.tokenizers import shared
from nextword.core.events import Done, Event, Measure, Note
from nextword.training.budget.plan import Plans

REPORT = "report.html"


@dataclass(frozen=True)
class Comparison:
    """The rows, the best first, and the report they were written to."""

    rows: list[Row]
    growth: Growth | None
    report: Path
    about: str
    models: list[RankedModel[Row]] = field(default_factory=list)  # the models: rows of several seeds together

    def __repr__(self) -> str:
        first = f"best {self.models[0].name}, " if self.models else ""
        return f"<Comparison of {len(self.models)} models: {first}report {self.report}>"

    @property
    def best(self) -> str:
        """The run that predicts best."""
        first = next((row for row in self.rows if row.ranks and row.run), None)
        return str(self.report.parent / first.run) if first else "latest"

    @property
    def next_command(self) -> str:
        """What one would naturally run next."""
        return f"nextword generate {self.best}"

    @property
    def samples(self) -> list[tuple[str, str]]:
        """What each model generates, the first of its texts."""
        firsts = [(each.name, each.first.sentences) for each in self.models]
        return [(name, texts[0]) for name, texts in firsts if texts]

    def to_json(self) -> dict[str, Any]:
        """Return every number."""
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
            "models": [each.to_json() for each in self.models],
            "by_order": orders,
        }

    def __str__(self) -> str:
        """Return the table, the notes on single models, and how far each is behind the best."""
        notes = [f"{each.name}: {note}" for each in self.models for note in (each.note, each.planned) if note]
        tested, few = differences(self.models), few_seeds(self.models)
        more = [] if tested is None else ["", str(tested), *([few] if few else [])]
        return "\n".join([str(table(self.models)), *notes, *more])

    def _repr_html_(self) -> str:
        return page(self.models, self.growth, self.about).fragment()


def compare(setup: Setup) -> Iterator[Event]:
    """Train and measure every model that is not finished yet; the last event is ``Done(Comparison)``."""
    setup = yield from shared(setup)
    made: list[tuple[Entry, Row]] = []
    pace, plans = RunPace(setup), _plans(setup)
    for entry in setup.entries:
        parts = parts_of(entry, made) if entry.is_mixture else []
        key = _key(setup, entry, parts)
        row = kept(setup.out, entry.label, key, Row)
        if row is not None:
            yield Note(f"{entry.label} is already finished; its row is reused")
            pace.skip(entry)
        else:
            row = yield from _made(setup, entry, key, parts, pace, plans)
        row = replace(row, model=entry.name)
        made.append((entry, row))
        yield Measure(row.to_json())
    found = yield from growth(setup)
    about = split_note(setup)
    models = rank([row for _, row in made], setup.block_bytes.tolist())
    path = page(models, found, about).save(setup.out / REPORT)
    yield Done(Comparison(ranked([row for _, row in made]), found, path, about, models))


def _plans(setup: Setup) -> dict[str, Plans]:
    """Return the plans of models of which a seed is finished: the seeds that are left use them."""
    found: dict[str, Plans] = {entry.name: Plans(are_shared=True) for entry in setup.entries}
    for entry in setup.entries:
        row = None if entry.is_mixture else kept(setup.out, entry.label, _key(setup, entry, []), Row)
        if row is not None and row.plan:
            found[entry.name] = Plans.from_json(row.plan)
    return found


def _made(
    setup: Setup, entry: Entry, key: str, parts: list[Row], pace: RunPace, plans: Mapping[str, Plans]
) -> Generator[Event, None, Row]:
    """Train and measure a model that has no row yet."""
    if len(setup.entries) > 1:
        yield Note(pace.line(entry))
    with pace.running(entry):
        if entry.is_mixture:
            row = yield from mix_one(setup, entry, parts, key)
        else:
            row = yield from run_one(setup, entry, key, plans[entry.name])
    if row.run:
        keep(setup.out, row)
    return row


def _key(setup: Setup, entry: Entry, parts: list[Row]) -> str:
    """Hash what a row depends on: also the shared tokenizer, a network's minutes, a mixture's parts."""
    more = [Path(setup.tokenizers.get(entry.tokenizer, "")).name]
    more += [f"{setup.minutes} minutes, one plan for all seeds"] if entry.is_neural else []
    return key_of(entry.settings, setup.digest, *more, *(part.key for part in parts))

"""``nextword compare --rows``: every modification at the same budget, and the lecture's table for your text.

[MAUSAM "Do Transformer Modifications Transfer Across Implementations and Applications?"]: "Generally, no!" is
a statement about such a table. The first seed of every row comes first, so that a bench that is stopped has a
whole table of fewer seeds; the same command continues it, run by run.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nextword.comparison.bench import result as results
from nextword.comparison.bench.plan import Plan, Planner, key_of
from nextword.comparison.bench.power import power_note
from nextword.comparison.bench.probes import ask
from nextword.comparison.bench.result import BenchResult
from nextword.comparison.bench.setup import BenchSetup
from nextword.comparison.bench.standing import Standing, stand
from nextword.comparison.bench.training import RUNS, Learned, Text, prepare, train
from nextword.comparison.bench.writing import write
from nextword.comparison.entries import Entry
from nextword.comparison.measure import scored
from nextword.comparison.rows import finite
from nextword.comparison.tokenizers import shared
from nextword.core.display import about
from nextword.core.errors import TrainingError
from nextword.core.events import Done, Event, Measure, Note, Stage
from nextword.evaluation.lm.signature import version
from nextword.runs.saved import Trained

PILOT = 3  # seeds of the baseline, trained for a short time
_WHOLE = 1.4  # times the steps themselves: the sweep, and what is measured


@dataclass(frozen=True)
class Benched:
    """The rows, the best first, and the files they were written to."""

    standing: Standing
    report: Path
    files: tuple[Path, ...]
    samples: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return the table and what it says."""
        return str(self.standing)

    def __repr__(self) -> str:
        return f"<Bench of {len(self.standing.rows)} rows: report {self.report}>"

    @property
    def next_command(self) -> str:
        """What one would naturally run next."""
        best = self.standing.rows[0].first
        run = self.report.parent / RUNS / best.run
        return f"nextword generate {run}" if run.exists() else f"nextword train DATA --model {best.model}"

    def to_json(self) -> dict[str, Any]:
        """Return every number."""
        files = [str(each) for each in self.files]
        return self.standing.to_json() | {"report": str(self.report), "files": files}


def bench(setup: BenchSetup) -> Iterator[Event]:
    """Plan, train and measure every row; the last event is ``Done(Benched)``."""
    setup = replace(setup, setup=(yield from shared(setup.setup)))
    for row in setup.rows.missing:
        yield Note(f"{row.title} is not trained: {row.missing}")
    found = _finished(setup)
    if found:
        yield Note(f"{len(found)} of {len(setup.entries)} runs are already finished")
        _written(setup, found)
    if len(found) < len(setup.entries):
        yield from _rest(setup, found)
    standing = stand(setup, _in_order(setup, found))
    if setup.probes:
        standing = replace(standing, probes=(yield from ask(setup, _in_order(setup, found))))
    report, *files = write(standing, setup.setup.out)
    yield Done(Benched(standing, report, tuple(files)))


def _finished(setup: BenchSetup) -> dict[str, BenchResult]:
    """Return the runs that were written before, by their label."""
    found = {
        entry.label: results.kept(setup.setup.out, entry.label, _key(setup, entry)) for entry in setup.entries
    }
    return {label: row for label, row in found.items() if row is not None}


def _key(setup: BenchSetup, entry: Entry) -> str:
    return f"{key_of(setup, entry.model)}-{entry.number}"


def _in_order(setup: BenchSetup, found: Mapping[str, BenchResult]) -> list[BenchResult]:
    return [found[entry.label] for entry in setup.entries if entry.label in found]


def _written(setup: BenchSetup, found: Mapping[str, BenchResult]) -> None:
    """Write the table of what there is, once there is a baseline."""
    if any(row.model == setup.rows.baseline.preset for row in found.values()):
        write(stand(setup, _in_order(setup, found)), setup.setup.out)


def _rest(setup: BenchSetup, found: dict[str, BenchResult]) -> Generator[Event, None, None]:
    """Train the runs that are not there yet; the table is written after each."""
    text = yield from prepare(setup)
    planner = Planner(setup, text)
    first = yield from planner.plan(setup.rows.baseline.preset)
    yield from _announce(setup, planner, first, len(setup.entries) - len(found))
    for place, entry in enumerate(setup.entries, start=1):
        if entry.label not in found:
            made = yield from _one(setup, entry, planner, text, f"{place} of {len(setup.entries)}")
            found |= {} if made is None else {entry.label: made}
            _written(setup, found)


def _announce(setup: BenchSetup, planner: Planner, first: Plan, left: int) -> Generator[Event, None, None]:
    """Say before a long bench how long the runs that are left take, and which differences it can find."""
    seconds = left * first.steps * first.seconds_per_step * _WHOLE
    what = "in all" if left == len(setup.entries) else f"for the {left} runs that are left"
    yield Note(
        f"{len(setup.rows.trained)} rows x {setup.seeds} seeds, {setup.budget.describe()}: {about(seconds)} "
        f"{what}, if every row is as fast as the baseline"
    )
    losses = yield from planner.pilot(first, PILOT)
    yield Note(power_note(losses, setup.seeds, len(setup.rows.trained) - 1))


def _one(
    setup: BenchSetup, entry: Entry, planner: Planner, text: Text, place: str
) -> Generator[Event, None, BenchResult | None]:
    """Train and measure one run; None where it diverges."""
    title = setup.rows.find(entry.model).title
    try:
        plan = yield from planner.plan(entry.model)
        yield Note(f"{place}: {title}, seed {entry.number}, {plan.steps:,} steps")
        settings = planner.settings(entry.model, plan, entry.number)
        learned, trained = yield from train(setup, entry, settings, text, _key(setup, entry))
    except TrainingError as error:  # the other rows continue, unless there is nothing to compare with
        if entry.model == setup.rows.baseline.preset and entry.number == 0:
            raise
        yield Note(f"{title}, seed {entry.number}: {error}")
        return None
    yield Stage(f"{title}: measure")
    row = _measured(setup, entry, plan, learned, trained)
    results.keep(setup.setup.out, entry.label, row)
    yield Measure(results.short(row))
    return row


def _measured(setup: BenchSetup, entry: Entry, plan: Plan, learned: Learned, trained: Trained) -> BenchResult:
    """Measure the new text, and put all numbers of a run together."""
    report, _, _, blocks = scored(setup.setup, trained)
    return BenchResult(
        entry.model, _key(setup, entry), seed=learned.settings.train.seed,
        train_seconds=round(learned.seconds, 3), note=plan.note, run=entry.label,
        title=setup.rows.find(entry.model).title, blocks=[finite(float(bits)) for bits in blocks],
        curve=[(seconds, tokens, bits) for seconds, tokens, _, bits in learned.curve],
        early=learned.early, final=learned.loss, bits_per_byte=finite(report.bits_per_byte),
        perplexity=finite(report.perplexity), tokens=int(learned.facts["tokens"]),
        steps=int(learned.facts["steps"]), rate=plan.rate, parameters=plan.parameters,
        operations=plan.operations, speed=round(plan.speed, 4), relative_speed=round(plan.relative_speed, 4),
        precision=str(learned.facts["precision"]), threads=int(learned.facts["threads"]), version=version(),
        signature=report.signature, losses=plan.losses,
    )  # fmt: skip

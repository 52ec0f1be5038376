"""``nextword compare --task T``: train every model, measure all on the same examples, rank them.

The number that the task names decides (`Task.deciding`), and how each example was solved says how certain the
order is.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nextword.comparison.entries import Entry
from nextword.comparison.progress import RunPace
from nextword.comparison.ranking import Decides, RankedModel, few_seeds, rank
from nextword.comparison.rows import finite, keep, kept, key_of, ranked
from nextword.comparison.runner import train_one
from nextword.comparison.task.report import differences_of, page, readable, table
from nextword.comparison.task.rows import TaskRow
from nextword.comparison.task.setup import TaskSetup
from nextword.core.events import Done, Event, Measure, Note, Stage
from nextword.core.task import Task
from nextword.evaluation.lm.spans import MOST
from nextword.runs import saved
from nextword.runs.saved import Trained
from nextword.training.budget.plan import Plans

REPORT = "report.html"


@dataclass(frozen=True)
class TaskComparison:
    """The rows, the best first, and the report they were written to."""

    rows: list[TaskRow]
    models: list[RankedModel[TaskRow]]
    report: Path
    about: str
    task: Task
    decides: str  # the measure that ranks

    @property
    def best(self) -> str:
        """The run that is best."""
        first = next((row for row in self.rows if row.ranks and row.run), None)
        return str(self.report.parent / first.run) if first else "latest"

    @property
    def next_command(self) -> str:
        """What one would naturally run next."""
        return f"nextword predict {self.best} FILE"

    @property
    def samples(self) -> list[tuple[str, str]]:
        """Nothing: a prediction means little without its example; the report shows both."""
        return []

    def to_json(self) -> dict[str, Any]:
        """Return every number."""
        return {
            "task": self.task.name,
            "decides": self.decides,
            "about": self.about,
            "report": str(self.report),
            "models": [each.to_json() for each in self.models],
        }

    def __str__(self) -> str:
        """Return the table, the notes on single models, and how far each is from the best."""
        notes = [f"{each.name}: {note}" for each in self.models for note in (each.note, each.planned) if note]
        tested, few = differences_of(self.models), few_seeds(self.models)
        more = [] if tested is None else ["", str(tested), *([few] if few else [])]
        return "\n".join([str(table(self.models)), *notes, *more])


def compare(setup: TaskSetup) -> Iterator[Event]:
    """Train and measure every model that is not finished yet; the last event is ``Done(TaskComparison)``."""
    rows: list[TaskRow] = []
    pace, finished = RunPace(setup), _finished(setup)
    plans = _plans(setup, finished.values())
    for entry in setup.entries:
        row = finished.get(entry.label)
        if row is not None:
            yield Note(f"{entry.label} is already finished; its row is reused")
            pace.skip(entry)
        else:
            if len(setup.entries) > 1:
                yield Note(pace.line(entry))
            with pace.running(entry):
                row = yield from _made(setup, entry, plans[entry.name])
            if row.run:
                keep(setup.out, row)
        rows.append(replace(row, model=entry.name))
        yield Measure(rows[-1].to_json())
    task, about = setup.task, setup.division.about
    count = next((row.examples for row in rows if row.examples), 0)
    decides = next((row.decides for row in rows if row.run), task.decides)
    models = rank(
        rows, [float(len(block)) for block in _blocks(count)], Decides(readable(decides), task.higher)
    )
    path = page(models, about, task.noun, setup.division.samples).save(setup.out / REPORT)
    yield Done(TaskComparison(ranked(rows), models, path, about, task, decides))


def _finished(setup: TaskSetup) -> dict[str, TaskRow]:
    """Return the rows of runs that were made before, by their labels."""
    found = {
        entry.label: kept(setup.out, entry.label, _key(setup, entry), TaskRow) for entry in setup.entries
    }
    return {label: row for label, row in found.items() if row is not None}


def _plans(setup: TaskSetup, finished: Iterable[TaskRow]) -> Mapping[str, Plans]:
    """Return the plan of every model: that of a seed that is finished, or one to be made."""
    found = {entry.name: Plans(are_shared=True) for entry in setup.entries}
    return found | {row.model: Plans.from_json(row.plan) for row in finished if row.plan}


def _key(setup: TaskSetup, entry: Entry) -> str:
    minutes = [f"{setup.minutes} minutes"] if entry.is_neural else []
    return key_of(entry.settings, setup.division.digest, *minutes)


def _made(setup: TaskSetup, entry: Entry, plans: Plans) -> Generator[Event, None, TaskRow]:
    """Train a model, open its run and measure it, as a user would."""
    task, key = setup.task, _key(setup, entry)
    seconds, note = yield from train_one(setup, entry, entry.settings, setup.division.train, plans)
    row = TaskRow(entry.name, key, decides=task.decides, higher=task.higher, seed=entry.seed, note=note)
    if seconds is None:
        return row
    yield Stage(f"{entry.name}: measure")
    folder = setup.out / entry.label
    trained = saved.load(folder)
    began = time.perf_counter()
    scores = task.scores(trained, setup.division.held)
    took = time.perf_counter() - began
    each_E = np.asarray(scores.each, dtype=np.float64)
    sums = [float(each_E[block].sum()) for block in _blocks(len(each_E))]
    decides = task.deciding(trained.vocabulary)
    curve = _curve(trained, decides)
    return replace(
        row,
        decides=decides,
        run=entry.label,
        train_seconds=seconds,
        plan=plans.to_json(),
        size=sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
        values={name: value if value is None else finite(value) for name, value in scores.values.items()},
        of=scores.of,
        examples=len(each_E),
        speed=len(each_E) / max(took, 1e-9),
        blocks=[-value if task.higher else value for value in sums],
        curve=curve,
        valid=_valid(trained, decides),
        predictions=_predictions(task, trained, setup.division.samples),
    )


def _blocks(count: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """Cut examples into blocks, since there may be millions; few enough of them are blocks of their own."""
    return np.array_split(np.arange(count), min(count, MOST)) if count else []


def _curve(trained: Trained, decides: str) -> list[tuple[float, int, float]]:
    """Return seconds, tokens and what decides at each validation."""
    names = ("seconds", "tokens", f"valid_{decides}")
    whole = [row for row in trained.metrics if all(row.get(name) is not None for name in names)]
    return [(float(row[names[0]]), int(row[names[1]]), float(row[names[2]])) for row in whole]


def _valid(trained: Trained, decides: str) -> float | None:
    """Return what decides on the examples for choices, as training measured it last."""
    found = [row[f"valid_{decides}"] for row in trained.metrics if row.get(f"valid_{decides}") is not None]
    return float(found[-1]) if found else None


def _predictions(task: Task, trained: Trained, samples: Sequence[tuple[str, str]]) -> list[str]:
    return [task.shown(made) for made in task.predictor(trained).predict([text for text, _ in samples])]

"""One run of a comparison: trained, saved, opened again and measured as a user would."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from pathlib import Path

from nextword.comparison.entries import Entry
from nextword.comparison.measure import measured
from nextword.comparison.rows import Row
from nextword.comparison.setup import Setup
from nextword.comparison.tokenizers import with_file
from nextword.core.errors import TrainingError
from nextword.core.events import Done, Event, Note, Stage
from nextword.runs import saved
from nextword.store.writing import new_run
from nextword.tasks.lm import Texts
from nextword.training.budget.clock import Clock
from nextword.training.fit import fit
from nextword.training.order import Conditions

_COMPILED = "compiled"  # a note with this word means that the time includes compilation


def run_one(setup: Setup, entry: Entry, key: str) -> Generator[Event, None, Row]:
    """Train one model and measure it; its run stays in the output folder."""
    folder = setup.out / entry.label
    try:
        seconds, cold = yield from _train(setup, entry, folder)
    except TrainingError as error:  # the other models continue
        yield Note(f"{entry.label}: {error}")
        return Row(entry.name, key, note=str(error))
    if seconds is not None and cold and not entry.is_neural:
        yield Note(f"{entry.name} is trained again, because its time included compilation")
        again, _ = yield from _train(setup, entry, folder)
        seconds = min(seconds, again or seconds)
    if seconds is None:
        return Row(entry.name, key, note=f"stopped after {setup.minutes:g} minutes")
    yield Stage(f"{entry.name}: measure")
    seed = entry.settings.train.seed if entry.is_neural else None
    row = Row(entry.name, key, seed=seed, train_seconds=round(seconds, 3), run=entry.label)
    return measured(setup, saved.load(folder), row)


def _train(setup: Setup, entry: Entry, folder: Path) -> Generator[Event, None, tuple[float | None, bool]]:
    """Train and save; return the seconds (None: out of time) and whether something was compiled.

    A network keeps to its minutes itself; for a count model they are a limit.
    """
    began, cold = time.perf_counter(), False
    tune = setup.tune if entry.is_neural else None
    conditions = Conditions(Clock.minutes(setup.minutes), whole=True) if entry.is_neural else None
    limit = math.inf if setup.minutes is None or entry.is_neural else setup.minutes * 60
    try:
        with new_run(folder, overwrite=True) as new:
            for event in fit(with_file(setup, entry), Texts(setup.train, tune), new, conditions):
                if time.perf_counter() - began > limit:
                    raise _TimeOver
                if isinstance(event, Done):
                    saved.write(event.result, new)
                elif isinstance(event, Stage):
                    yield Stage(f"{entry.name}: {event.name}", event.total, event.unit)
                else:
                    cold = cold or (isinstance(event, Note) and _COMPILED in event.message)
                    yield event
    except _TimeOver:
        return None, cold
    return time.perf_counter() - began, cold


class _TimeOver(Exception):  # noqa: N818 - no mistake: the minutes for one model are over
    pass

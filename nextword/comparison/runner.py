"""One run of a comparison: trained, saved, opened again and measured as a user would."""

from __future__ import annotations

import math
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from nextword.comparison.entries import Entry
from nextword.comparison.measure import measured
from nextword.comparison.rows import Row
from nextword.comparison.setup import Setup
from nextword.comparison.tokenizers import with_file
from nextword.core.errors import TrainingError
from nextword.core.events import Done, Event, Note, Stage
from nextword.runs import saved
from nextword.runs.settings import RunSettings
from nextword.store.writing import new_run
from nextword.tasks.lm import Texts
from nextword.training.budget.plan import Plans
from nextword.training.clock import Clock
from nextword.training.fit import fit
from nextword.training.order import Conditions

_COMPILING = "compiling"  # a note with this word means that the time includes compilation


def run_one(setup: Setup, entry: Entry, key: str, plans: Plans) -> Generator[Event, None, Row]:
    """Train one language model and measure it; its run stays in the output folder.

    ``plans``: what was chosen for an earlier seed of the model; the first one fills them.
    """
    texts = Texts(setup.train, setup.tune if entry.is_neural else None)
    seconds, note = yield from train_one(setup, entry, with_file(setup, entry), texts, plans)
    if seconds is None:
        return Row(entry.name, key, note=note)
    yield Stage(f"{entry.name}: measure")
    row = Row(entry.name, key, seed=entry.seed, train_seconds=seconds, run=entry.label, plan=plans.to_json())
    return measured(setup, saved.load(setup.out / entry.label), row)


class Limits(Protocol):
    """Where runs go, and how long each may take."""

    @property
    def out(self) -> Path:
        """Return the output folder."""
        ...

    @property
    def minutes(self) -> float | None:
        """Return the minutes for each model."""
        ...


def train_one(
    limits: Limits, entry: Entry, settings: RunSettings, examples: Any, plans: Plans
) -> Generator[Event, None, tuple[float | None, str]]:
    """Train and save a model of any task; return the seconds that took, or None and the reason."""
    try:
        seconds, cold = yield from _train(limits, entry, settings, examples, plans)
        if seconds is not None and cold and not entry.is_neural:
            yield Note(f"{entry.name} is trained again, because its time included compilation")
            again, _ = yield from _train(limits, entry, settings, examples, plans)
            seconds = min(seconds, again or seconds)
    except TrainingError as error:  # the other models continue
        yield Note(f"{entry.label}: {error}")
        return None, str(error)
    if seconds is None:
        return None, f"stopped after {limits.minutes:g} minutes"
    return round(seconds, 3), ""


def _train(
    limits: Limits, entry: Entry, settings: RunSettings, examples: Any, plans: Plans
) -> Generator[Event, None, tuple[float | None, bool]]:
    """Train and save; return the seconds (None: out of time) and whether something was compiled.

    A network keeps to its minutes itself; for a count model they are a limit.
    """
    if entry.is_neural:
        import_module("nextword.training.loop")  # and torch: loading it is nobody's training
    clock, cold = Clock.minutes(limits.minutes), False
    conditions = Conditions(clock, whole=True, plans=plans) if entry.is_neural else None
    limit = math.inf if limits.minutes is None or entry.is_neural else limits.minutes * 60
    try:
        with new_run(limits.out / entry.label, overwrite=True) as new:
            for event in fit(settings, examples, new, conditions):
                if clock.used() > limit:
                    raise _TimeOver
                if isinstance(event, Done):
                    saved.write(event.result, new)
                elif isinstance(event, Stage):
                    yield Stage(f"{entry.name}: {event.name}", event.total, event.unit)
                else:
                    cold = cold or (isinstance(event, Note) and _COMPILING in event.message)
                    yield event
    except _TimeOver:
        return None, cold
    return clock.used(), cold  # without the time for a plan that all seeds share


class _TimeOver(Exception):  # noqa: N818 - no mistake: the minutes for one model are over
    pass

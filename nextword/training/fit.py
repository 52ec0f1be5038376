"""The story of a training: examples, vocabulary, ids, model, run; everything that happens is yielded.

Data goes down once. What an example is belongs to the task (`core.task`), what a model is to the family
(`core.family`): count families are fitted in passes, networks learn in the loop, mixtures are made of both.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from nextword.core.events import Done, Event, Measure, Rows, recorded
from nextword.core.family import Budget, CompositeFamily, NetworkFamily
from nextword.core.training import SpreadSettings
from nextword.runs import facts
from nextword.runs.saved import CONFIG, Trained
from nextword.runs.settings import RunSettings
from nextword.store.writing import NewRun
from nextword.training.conditions import Conditions


def fit(
    settings: RunSettings,
    examples: Any,
    folder: NewRun | None = None,
    conditions: Conditions | None = None,
) -> Iterator[Event]:
    """Train; the last event is ``Done(Trained)``. ``folder``: the run being written, if there is one."""
    began = time.perf_counter()
    conditions = conditions or Conditions()
    task, family = settings.find_task(), settings.find_family()
    if isinstance(family, CompositeFamily):
        from nextword.training.mixtures.blend import fit_mixture

        yield from fit_mixture(settings, examples, folder, replace(conditions, keeper=None))
        return
    metrics: Rows = []
    learned: dict[str, Any] = {}
    with _scratch(settings, folder) as scratch:
        settings, prepared = yield from task.prepare(examples, settings, conditions.preparation(scratch))
        if isinstance(family, NetworkFamily):
            from nextword.training.network import train_network

            settings, model, learned = yield from train_network(
                settings, prepared, conditions, metrics, _plan_writer(folder)
            )
        else:
            place = None if folder is None else folder.path
            budget = Budget(settings.train.seed, settings.train.memory, place, scratch, *_engine(settings))
            model = yield from recorded(task.fit(settings, prepared, budget), metrics)
            found = yield from task.validate(model, examples, prepared)
            if found is not None:
                metrics.append({f"valid_{name}": value for name, value in found.values.items()})
                yield Measure(metrics[-1])
    about = facts.collect(settings.train.seed, prepared.facts, time.perf_counter() - began, learned)
    yield Done(Trained(settings, model, prepared.vocabulary, about, metrics))


def _plan_writer(folder: NewRun | None) -> Callable[[RunSettings], None]:
    """Write the plan to ``config.toml`` before the first step."""
    return lambda settings: None if folder is None else folder.write(CONFIG, settings.to_toml())


def _engine(settings: RunSettings) -> tuple[str, str]:
    """Return who counts, and the master of a cluster."""
    train = settings.train
    return (train.engine, train.master) if isinstance(train, SpreadSettings) else ("local", "")


@contextmanager
def _scratch(settings: RunSettings, folder: NewRun | None) -> Iterator[Path | None]:
    """Make a folder for temporary files where memory is limited or a cluster counts: beside the run."""
    if not settings.train.memory and _engine(settings)[0] == "local":
        yield None
        return
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="nextword-") as name:
            yield Path(name)
        return
    path = folder.path / "scratch"
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)

"""A training run from start to end: examples, vocabulary, ids, model; progress is yielded as events.

The task (`core.task`) defines what an example is, the family (`core.family`) what a model is: count families
are fitted in passes, networks are trained in the loop, mixtures are made of both.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nextword.core import catalog
from nextword.core.contracts import Tokenizer
from nextword.core.errors import RunError
from nextword.core.events import Done, Event, Measure, Rows, kept, recorded
from nextword.core.family import Budget, CompositeFamily, NetworkFamily
from nextword.core.settings import SpreadSettings
from nextword.core.task import Prepared
from nextword.runs import facts
from nextword.runs.saved import CONFIG, Trained
from nextword.runs.settings import RunSettings, from_toml
from nextword.store.writing import NewRun
from nextword.system.machine import enough_memory
from nextword.training.memory import FEWEST, check_memory
from nextword.training.order import Conditions

if TYPE_CHECKING:
    from nextword.training.job import Job


def fit(
    settings: RunSettings,
    examples: Any,
    folder: NewRun | None = None,
    conditions: Conditions | None = None,
) -> Iterator[Event]:
    """Train a model; the last event is ``Done(Trained)``. ``folder``: the run being written, if any."""
    began = time.perf_counter()
    conditions = conditions or Conditions()
    task, family = settings.find_task(), settings.find_family()
    if isinstance(family, CompositeFamily):
        parts = replace(conditions, checkpointer=None)
        composition = catalog.find("composition", settings.task)
        yield from composition.fit(settings, examples, folder, parts, train_network)
        return
    metrics: Rows = []
    learned: dict[str, Any] = {}
    with _scratch(settings, folder) as scratch:
        settings, prepared = yield from task.prepare(examples, settings, conditions.preparation(scratch))
        if isinstance(family, NetworkFamily):
            settings, model, learned = yield from train_network(
                settings, prepared, conditions, metrics, _config_writer(folder)
            )
        else:
            place = None if folder is None else folder.path
            budget = Budget(
                settings.train.seed, settings.train.memory, place, scratch, *_engine(settings),
                seconds=conditions.clock.left(),
            )  # fmt: skip
            model = yield from recorded(task.fit(settings, prepared, budget), metrics)
            found = yield from task.validate(model, examples, prepared)
            if found is not None:
                metrics.append({f"valid_{name}": value for name, value in found.values.items()})
                yield Measure(metrics[-1])
        model = yield from task.finish(model, settings, prepared)
    about = facts.collect(settings.train.seed, prepared.facts, time.perf_counter() - began, learned)
    yield Done(Trained(settings, model, prepared.vocabulary, about, metrics))


def train_network(
    settings: RunSettings,
    prepared: Prepared,
    conditions: Conditions,
    metrics: Rows,
    ready: Callable[[RunSettings], None] | None = None,
) -> Generator[Event, None, tuple[RunSettings, Any, dict[str, Any]]]:
    """Train a network; return its settings, as chosen for the minutes, the model, and facts of the training.

    ``ready`` is called with the settings before the first step.
    """
    from nextword.training import loop
    from nextword.training.job import make_job
    from nextword.training.state import begin

    checkpointer = conditions.checkpointer
    if checkpointer is None or not checkpointer.resumes:
        settings = yield from kept(_calibrated(settings, prepared, conditions), metrics)
    check_memory(settings, _vocab_size(prepared), prepared.facts.tokens)
    with enough_memory("make this model"):
        settings, job = yield from kept(make_job(settings, prepared, conditions), metrics)
    if ready is not None:
        ready(settings)
    if conditions.ranks.is_distributed:
        _check_same_examples(conditions, job, prepared)
    state = begin(job)
    events: Iterable[Event] = loop.fit(job, state)
    if checkpointer is not None:
        yield from checkpointer.begin(job, settings, prepared, metrics)
        yield from checkpointer.restore(job, state)
        events = checkpointer.follow(events)
    with enough_memory("train this model"):
        outcome: loop.Outcome = yield from recorded(events, metrics)
    resumed = {"resumed": checkpointer.resumed} if checkpointer is not None and checkpointer.resumed else {}
    return settings, outcome.model, outcome.facts | resumed


def _vocab_size(prepared: Prepared) -> int:
    """Return the size of the vocabulary, where the task has a tokenizer."""
    vocabulary = prepared.vocabulary
    return vocabulary.vocab_size if isinstance(vocabulary, Tokenizer) else FEWEST


def _calibrated(
    settings: RunSettings, prepared: Prepared, conditions: Conditions
) -> Generator[Event, None, RunSettings]:
    """Choose the settings the user left open so that training fits the minutes; rank 0 decides for all."""
    from nextword.training.budget.calibrate import calibrate

    ranks = conditions.ranks
    if conditions.clock.is_limited and ranks.is_first:
        settings = yield from calibrate(settings, prepared, conditions)
    if not ranks.is_distributed:
        return settings
    chosen: str = ranks.broadcast(settings.to_toml())
    return settings if ranks.is_first else from_toml(chosen, "the settings of rank 0")


def _check_same_examples(conditions: Conditions, job: Job, prepared: Prepared) -> None:
    """Check that every rank has read the same examples."""
    from nextword.training.checkpointing import describe

    about = describe(job, prepared)
    hashes = conditions.ranks.gather([about["ids"], about["held_out"]])
    for rank, found in enumerate(hashes):
        if found != hashes[0]:
            raise RunError(
                f"rank {rank} has read a different text from rank 0 (SHA-256 {found[0][:12]}… and "
                f"{hashes[0][0][:12]}…); give all ranks the same files"
            )


def _config_writer(folder: NewRun | None) -> Callable[[RunSettings], None]:
    """Return a function that writes the settings to ``config.toml``, called before the first step."""
    return lambda settings: None if folder is None else folder.write(CONFIG, settings.to_toml())


def _engine(settings: RunSettings) -> tuple[str, str]:
    """Return the engine that counts, and the address of the cluster's master."""
    train = settings.train
    return (train.engine, train.master) if isinstance(train, SpreadSettings) else ("local", "")


@contextmanager
def _scratch(settings: RunSettings, folder: NewRun | None) -> Iterator[Path | None]:
    """Make a folder for temporary files inside the run, if memory is limited or a cluster counts."""
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

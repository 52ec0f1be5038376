"""``train``: turn an order into settings, and train the run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nextword.api.arguments import checked
from nextword.api.opened import Name
from nextword.api.run import Run, load
from nextword.core.errors import ConfigError, Stopped
from nextword.core.events import Done, Event, Note, Stage, finish
from nextword.core.family import CountFamily
from nextword.runs import saved
from nextword.runs.settings import RunSettings
from nextword.store.live import reported
from nextword.store.manifest import MANIFEST
from nextword.store.names import default_name, mark_latest
from nextword.store.unfinished import checkpoints_in
from nextword.store.writing import NewRun, check_target, new_run, real_path, tidy
from nextword.system.launch import Launch, launched
from nextword.system.signals import Stop
from nextword.training import resume as resuming
from nextword.training.budget.estimate import estimate as estimate_training
from nextword.training.budget.estimate import warn_if_too_slow
from nextword.training.checkpointing import Checkpointer
from nextword.training.clock import Clock
from nextword.training.distributed import processes
from nextword.training.fit import fit
from nextword.training.order import Conditions, Order, is_read, pack, settings_of
from nextword.training.ranks import Ranks


@checked
def train(
    data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    model: str | None = None,
    task: str | None = None,
    recipe: str | os.PathLike[str] | None = None,
    source: str | os.PathLike[str] | Run | None = None,
    valid: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    minutes: float | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the interface's name
    seed: int | None = None,
    device: str = "auto",
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
) -> Run:
    """Train a model and return it; ``out`` saves it in a folder, from which ``resume`` resumes it.

    ``source`` (``--from`` on the command line) is a run whose weights training starts from; ``set`` takes any
    setting, and the other keywords are the options of ``nextword train``.

    >>> nextword.train("corpus.txt", model="ngram", set={"model.order": 2})
    <Run ngram over 14 words, ... n-grams, in memory>
    """
    requested = order_of(data, model, task, recipe, source, valid, tokenizer, minutes, set, seed, device)
    made: Run = finish(run(requested, out, resume=resume, overwrite=overwrite, keep=out is not None))
    return made


def order_of(
    data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
    model: str | None,
    task: str | None,
    recipe: Name | None,
    source: Name | Run | None,
    valid: Name | Sequence[Name] | None,
    tokenizer: Name | None,
    minutes: float | None,
    sets: Mapping[str, Any] | None,
    seed: int | None,
    device: str,
) -> Order:
    """Collect the arguments of a call as an order; paths become strings."""
    if minutes is not None and not isinstance(minutes, int):
        minutes = float(minutes)
    return Order(
        data=_names(data), task=task, model=model, recipe=_text(recipe), source=_run_name(source),
        valid=_names(valid) or None, tokenizer=_text(tokenizer), minutes=minutes,
        sets=dict(sets or {}), seed=None if seed is None else int(seed), device=device,
    )  # fmt: skip


def _text(name: Name | None) -> str | None:
    return None if name is None else os.fspath(name)


def _run_name(run: Name | Run | None) -> str | None:
    """Return the folder of a run, since training starts from saved weights."""
    if not isinstance(run, Run):
        return _text(run)
    if run.path is None:
        raise ConfigError("'source' is a run that is not saved; save it first with run.save(\"runs/NAME\")")
    return os.fspath(run.path)


def run(
    order: Order,
    out: str | os.PathLike[str] | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    keep: bool = True,
    began: float | None = None,
) -> Iterator[Event]:
    """Train as ordered; the last event holds the run. ``keep=False`` does not save it.

    ``began``: the time (of ``time.monotonic``) from which the minutes count; default: now. While a neural
    model trains, Ctrl-C stops it after the current step and saves the run. Processes that torchrun has
    started train one model together; all but the first yield only the last event.
    """
    if resume and overwrite:
        raise ConfigError("--resume and --overwrite cannot be combined; --overwrite starts over")
    launch = launched()
    ranks = Ranks()
    if launch.world > 1:
        ranks = processes.connect_ranks(launch, settings_of(order)[0], order.device, resume)
    with ranks.reporting_failures():
        if launch.may_restart or launch.restarts:
            resume, overwrite = processes.options_after_restart(launch, out, resume, overwrite, ranks)
        how = Start(resume, overwrite, keep, began, launch, ranks)
        stage = ""
        try:
            for event in _run(order, out, how):
                stage = event.name if isinstance(event, Stage) else stage
                if ranks.is_first or isinstance(event, Done):
                    yield event
        except KeyboardInterrupt as stop:
            raise Stopped(_what_is_kept(stage, out, how)) from stop
    ranks.leave()


def _what_is_kept(stage: str, out: str | os.PathLike[str] | None, how: Start) -> str:
    """Say after an early Ctrl-C what is on disk and how to continue."""
    place = f"stopped during '{stage}'" if stage else "stopped"
    if out is not None and how.resume and checkpoints_in(real_path(out)):
        return f"{place}; the checkpoint in {os.fspath(out)} is unchanged; continue with the same command"
    there = out is not None and os.path.isfile(os.path.join(out, MANIFEST))
    old = f"; the earlier run in {os.fspath(out or '')} is unchanged" if there else ""
    return f"{place}, before there was anything to save{old}; the same command starts over"


@dataclass(frozen=True)
class Start:
    """How training starts: resumed or not, saved or not, in one process or several."""

    resume: bool
    overwrite: bool
    keep: bool
    began: float | None
    launch: Launch
    ranks: Ranks


def _run(order: Order, out: str | os.PathLike[str] | None, how: Start) -> Iterator[Event]:
    ranks = how.ranks
    checkpoint = (yield from resuming.find_checkpoint_together(out, ranks)) if how.resume else None
    order = order if checkpoint is None else resuming.complete_order(order, checkpoint)
    clock = Clock.minutes(order.minutes, how.began)
    settings, notes = settings_of(order)
    if ranks.world > 1:
        processes.check_family(settings, ranks.world)
    if checkpoint is None and out is not None and how.resume and os.path.isfile(os.path.join(out, MANIFEST)):
        yield Note(f"{os.fspath(out)} is finished; there is nothing to resume")
        if ranks.is_first:
            tidy(out)
        yield Done(load(out))
        return
    yield from notes
    packed = pack(order, settings)
    if checkpoint is not None:
        settings = resuming.resumed_settings(checkpoint, settings, os.fspath(out or ""))
        packed["minutes"] = resuming.first_minutes(checkpoint)
        clock.began -= resuming.seconds_used(checkpoint)  # what was used before the interruption counts
    examples = order.open(settings)
    if isinstance(settings.find_family(), CountFamily):
        yield from warn_if_too_slow(order.minutes, settings, examples)
    with Stop() as stop:
        start = _start(order, settings) if checkpoint is None else None
        conditions = Conditions(clock, stop, order.device, start, ranks=ranks)
        if how.keep and not ranks.is_first:  # it writes only its part of a checkpoint
            nowhere = NewRun(Path(), Path(out or ""))
            checkpointer = Checkpointer(
                nowhere, settings.find_task(), packed, checkpoint, clock, packed["minutes"], ranks
            )
            conditions = replace(conditions, checkpointer=checkpointer)
        if not how.keep or not ranks.is_first:
            for event in fit(settings, examples, None, conditions):
                yield Done(Run(event.result)) if isinstance(event, Done) else event
            return
        target = default_name(settings.name, order.names[0]) if out is None else out
        resumes = checkpoint is not None
        check_target(target, how.overwrite, resumes)
        with new_run(target, overwrite=how.overwrite, resumes=resumes) as folder:
            if how.launch.may_restart:
                processes.remove_old_checkpoints(folder, how.launch, how.overwrite)
            checkpointer = Checkpointer(
                folder, settings.find_task(), packed, checkpoint, clock, packed["minutes"], ranks
            )
            conditions = replace(conditions, checkpointer=checkpointer)
            for event in reported(fit(settings, examples, folder, conditions), folder):
                if isinstance(event, Done):
                    saved.write(event.result, folder)
                else:
                    yield event
        mark_latest(target)
        yield Done(Run(saved.load(target)))


def _start(order: Order, settings: RunSettings) -> saved.Trained | None:
    """Load the run whose weights training starts from (``--from``); None where it is read as it is."""
    if order.source is None:
        return None
    start = saved.load(order.source)
    return None if is_read(start.settings, settings.task) else start


def estimate(order: Order) -> dict[str, Any]:
    """Estimate what a training run would take; nothing is trained."""
    settings, _ = settings_of(order)
    conditions = Conditions(Clock.minutes(order.minutes), device=order.device)
    return estimate_training(settings, order.open(settings), conditions)


def _names(data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None) -> tuple[str, ...]:
    if data is None:
        return ()
    if isinstance(data, (str, os.PathLike)):
        return (os.fspath(data),)
    return tuple(os.fspath(name) for name in data)

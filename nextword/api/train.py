"""``train``: what was asked becomes settings, the settings a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from nextword.api import resuming
from nextword.api.run import Run, load
from nextword.core import catalog, config
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Note, finish
from nextword.core.family import CompositeFamily, Cost, CountFamily, NetworkFamily
from nextword.core.task import Task
from nextword.runs import saved
from nextword.runs.settings import RunSettings, from_toml, plan
from nextword.store.manifest import MANIFEST
from nextword.store.names import default_name, mark_latest, resolve
from nextword.store.reading import open_run
from nextword.store.writing import NewRun, check_target, new_run, tidy
from nextword.system.launch import Launch, launched
from nextword.system.signals import Stop
from nextword.training.budget.clock import Clock
from nextword.training.checkpointing import Keeper
from nextword.training.conditions import Conditions
from nextword.training.distributed import together
from nextword.training.distributed.ranks import Ranks
from nextword.training.fit import fit
from nextword.training.resume import go_on

DEFAULT_CORPUS = "sotu"
_DEVICES = ("auto", "cpu")
_NEURAL_DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True)
class Order:
    """What somebody asked `train` for."""

    data: tuple[str, ...] = ()
    task: str | None = None
    model: str | None = None
    recipe: str | None = None
    source: str | None = None  # --from
    valid: str | None = None
    tokenizer: str | None = None
    minutes: float | None = None
    sets: Mapping[str, Any] | Sequence[str] = ()
    seed: int | None = None
    device: str = "auto"

    @property
    def names(self) -> tuple[str, ...]:
        """The text; without any, the embedded corpus."""
        return self.data or (DEFAULT_CORPUS,)


def train(
    data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    model: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - the interface's name
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    **order: Any,
) -> Run:
    """Train a model and return it; ``out`` keeps it in a folder, where ``resume`` goes on with it.

    Further keywords are those of the command line: tokenizer, valid, minutes, seed, task, recipe, device.
    """
    known = set_of_names()
    for name in order:
        if name not in known:
            raise ConfigError(catalog.unknown("argument", name, sorted(known), "of train"))
    asked = Order(data=_names(data), model=model, sets=dict(set or {}), **order)
    made: Run = finish(run(asked, out, resume=resume, overwrite=overwrite, keep=out is not None))
    return made


def set_of_names() -> frozenset[str]:
    """The keywords that `train` takes besides its own."""
    return frozenset(Order.__dataclass_fields__) - {"data", "model", "sets"}


def run(
    order: Order,
    out: str | os.PathLike[str] | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    keep: bool = True,
    began: float | None = None,
) -> Iterator[Event]:
    """Train as asked; the last event holds the run. ``keep=False`` leaves it in memory.

    ``began``: the moment (of ``time.monotonic``) from which the minutes count; default: now. While a neural
    model learns, Ctrl-C ends it after the current step, and what was learnt is the run. Where torchrun has
    started several processes they train one model together; all but the first yield the end alone.
    """
    if resume and overwrite:
        raise ConfigError("--resume and --overwrite exclude each other; --overwrite begins anew")
    launch = launched()
    ranks = Ranks()
    if launch.world > 1:
        ranks = together.meet(launch, settings_of(order)[0], order.device, resume)
    with ranks.explaining():
        resume, overwrite = together.taken_up(launch, out, resume, overwrite, ranks)
        how = How(resume, overwrite, keep, began, launch, ranks)
        for event in _run(order, out, how):
            if ranks.is_first or isinstance(event, Done):
                yield event
    ranks.leave()


@dataclass(frozen=True)
class How:
    """How a training is begun, besides what is asked of it."""

    resume: bool
    overwrite: bool
    keep: bool
    began: float | None
    launch: Launch
    ranks: Ranks


def _run(order: Order, out: str | os.PathLike[str] | None, how: How) -> Iterator[Event]:
    ranks = how.ranks
    checkpoint = (yield from resuming.find_together(out, ranks)) if how.resume else None
    order = order if checkpoint is None else resuming.completed(order, checkpoint)
    settings, notes = settings_of(order)
    together.check(settings, ranks.world)
    if checkpoint is None and out is not None and how.resume and os.path.isfile(os.path.join(out, MANIFEST)):
        yield Note(f"{os.fspath(out)} is finished; there is nothing to resume")
        if ranks.is_first:
            tidy(out)
        yield Done(load(out))
        return
    yield from notes
    asked = resuming.asked(order, settings, checkpoint)
    settings = settings if checkpoint is None else go_on(checkpoint, settings, os.fspath(out or ""))
    examples = _examples(order, settings)
    yield from _in_time(order, settings, examples)
    with Stop() as stop:
        start = _start(order) if checkpoint is None else None
        clock = resuming.clock_of(order, checkpoint, how.began)
        conditions = Conditions(clock, stop, order.device, start, ranks=ranks)
        if how.keep and not ranks.is_first:  # it writes nothing but its part of a checkpoint
            nowhere = NewRun(Path(), Path(out or ""))
            keeper = Keeper(nowhere, settings.find_task(), asked, checkpoint, clock, asked["minutes"], ranks)
            conditions = replace(conditions, keeper=keeper)
        if not how.keep or not ranks.is_first:
            for event in fit(settings, examples, None, conditions):
                yield Done(Run(event.result)) if isinstance(event, Done) else event
            return
        target = default_name(settings.name, order.names[0]) if out is None else out
        goes_on = checkpoint is not None
        check_target(target, how.overwrite, goes_on)
        with new_run(target, overwrite=how.overwrite, goes_on=goes_on) as folder:
            together.clear(folder, how.launch, how.overwrite)
            keeper = Keeper(folder, settings.find_task(), asked, checkpoint, clock, asked["minutes"], ranks)
            conditions = replace(conditions, keeper=keeper)
            for event in fit(settings, examples, folder, conditions):
                if isinstance(event, Done):
                    saved.write(event.result, folder)
                else:
                    yield event
        mark_latest(target)
        yield Done(load(target))


def _examples(order: Order, settings: RunSettings) -> Any:
    """Open what is learned from and what is held out, as the task reads it."""
    valid = () if order.valid is None else (order.valid,)
    return settings.find_task().examples(order.names, valid, settings)


def _start(order: Order) -> saved.Trained | None:
    """The run whose weights the training begins with."""
    return None if order.source is None else saved.load(order.source)


def _in_time(order: Order, settings: RunSettings, examples: Any) -> Iterator[Event]:
    """Say so where a count model will hardly be ready within the minutes, which are an upper limit for it."""
    family = settings.find_family()
    if order.minutes is None or not isinstance(family, CountFamily):
        return
    seconds = _cost(settings, family, examples).seconds
    if seconds > 60 * order.minutes:
        yield Note(f"about {seconds:,.0f} s are expected, more than the {order.minutes:g} minutes asked for")


def _cost(settings: RunSettings, family: CountFamily, examples: Any) -> Cost:
    return family.estimate(settings.model, examples.size or 0, getattr(settings.text, "tokenizer", ""))


def settings_of(order: Order) -> tuple[RunSettings, list[Note]]:
    """Every setting, checked, and what should be said about the choice."""
    if order.model is not None and order.recipe is not None:
        raise ConfigError('--model and --recipe exclude each other; write family = "…" into the recipe')
    if order.minutes is not None and not order.minutes > 0:
        raise ConfigError(f"'minutes' is {order.minutes}; it must be more than 0")
    model, notes = order.model, []
    sets = order.sets if isinstance(order.sets, Mapping) else config.parse_sets(order.sets)
    begun = None if order.source is None else _settings_from(order.source)
    if begun is not None and order.recipe is None and model is None:
        model = begun.family
    if order.recipe is None and model in (None, "auto"):
        choice = cast(Task, catalog.find("task", order.task or "lm")).choose(sets, order.minutes)
        sets = {**choice.sets, **sets}
        model, notes = choice.model, [Note(f"auto chose the model '{choice.model}': {choice.why}")]
    settings = plan(
        model or "ngram",
        recipe=order.recipe,
        tokenizer=order.tokenizer,
        seed=order.seed,
        sets=sets,
        task=order.task,
        base=None if begun is None else lambda family: _base(begun, family, order),
    )
    _check_device(order.device, settings)
    family = settings.find_family()
    if isinstance(family, CompositeFamily) and order.minutes is None:
        raise ConfigError(
            f"a {settings.family} is not trained on text without --minutes; make one with: {family.made_by}"
        )
    return settings, notes


def _settings_from(name: str) -> RunSettings:
    """The settings of the run that is gone on from; a count model cannot be."""
    folder = open_run(resolve(name))
    found = from_toml(folder.read_text(saved.CONFIG), str(folder.path / saved.CONFIG))
    if not isinstance(found.find_family(), NetworkFamily):
        raise ConfigError(
            f"--from needs a model with weights to go on from, and '{name}' is a {found.family}; join the "
            "texts instead (train A B), or mix two runs (nextword mix)"
        )
    return found


def _base(begun: RunSettings, family: str, order: Order) -> dict[str, Any]:
    """What the new run has from the old one: its model, and its tokenizer unless another is named."""
    if family != begun.family:
        raise ConfigError(
            f"--from '{order.source}' is a {begun.family}, and a {family} cannot begin with its weights; "
            f"leave --model out, or choose {begun.family}"
        )
    base = {f"model.{name}": value for name, value in begun.model.model_dump().items()}
    if order.source is not None and order.tokenizer is None:
        base["text.tokenizer"] = os.fspath(resolve(order.source))
    return base


def _check_device(device: str, settings: RunSettings) -> None:
    """Count models know the CPU only; for the others the device must be there."""
    neural = isinstance(settings.find_family(), NetworkFamily)
    allowed = _NEURAL_DEVICES if neural else _DEVICES
    if device not in allowed:
        raise ConfigError(catalog.unknown("device", device, allowed, "" if neural else "for count models"))
    if neural:
        from nextword.models.precision import find_device

        find_device(device)


def estimate(order: Order) -> dict[str, Any]:
    """Return what a training would take; nothing is trained."""
    settings, _ = settings_of(order)
    examples = _examples(order, settings)
    return _estimate(settings, examples, Conditions(Clock.minutes(order.minutes), device=order.device))


def _estimate(settings: RunSettings, examples: Any, conditions: Conditions) -> dict[str, Any]:
    family = settings.find_family()
    if isinstance(family, CompositeFamily):
        return _of_parts(settings, examples, conditions)
    if isinstance(family, NetworkFamily):
        from nextword.training.budget.forecast import forecast

        return forecast(settings, examples, conditions)
    assert isinstance(family, CountFamily)
    cost, most = _cost(settings, family, examples), settings.train.memory
    memory = min(cost.memory, most) if most else cost.memory
    return {"model": settings.name, "bytes": examples.size or 0, **asdict(cost), "memory": memory}


def _of_parts(settings: RunSettings, examples: Any, conditions: Conditions) -> dict[str, Any]:
    """A mixture takes its minutes, the memory of its parts and their room on disk."""
    from nextword.training.mixtures.blend import part_settings

    found = [_estimate(part, examples, conditions) for part in part_settings(settings)]
    summed = {name: sum(each.get(name, 0) for each in found) for name in ("parameters", "memory", "disk")}
    size = examples.size or 0
    return {"model": settings.name, "bytes": size, "seconds": conditions.clock.seconds, **summed}


def _names(data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None) -> tuple[str, ...]:
    if data is None:
        return ()
    if isinstance(data, (str, os.PathLike)):
        return (os.fspath(data),)
    return tuple(os.fspath(name) for name in data)

"""What was asked of a training: the order, the settings that follow from it, and its conditions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nextword.core import catalog, config
from nextword.core.errors import ConfigError
from nextword.core.events import Note
from nextword.core.family import CompositeFamily, NetworkFamily
from nextword.core.task import Preparation, Task
from nextword.runs import saved
from nextword.runs.settings import RunSettings, from_toml, plan
from nextword.store.names import resolve
from nextword.store.reading import open_run
from nextword.system.signals import Stop
from nextword.training.budget.clock import Clock
from nextword.training.distributed.ranks import Ranks

if TYPE_CHECKING:
    from nextword.training.checkpointing import Checkpointer

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

    def given_sets(self) -> dict[str, Any]:
        """Return the settings that were named, by their dotted names."""
        return dict(self.sets) if isinstance(self.sets, Mapping) else config.parse_sets(self.sets)

    def open(self, settings: RunSettings) -> Any:
        """Open what is learned from and what is held out, as the task reads it."""
        valid = () if self.valid is None else (self.valid,)
        return settings.find_task().examples(self.names, valid, settings)


@dataclass(frozen=True)
class Conditions:
    """What is no setting of the model, and so not part of its configuration."""

    clock: Clock = field(default_factory=Clock)
    stop: Stop = field(default_factory=Stop)
    device: str = "cpu"  # auto, cpu, cuda, mps
    start: saved.Trained | None = None  # the run whose weights it begins with
    whole: bool = False  # read all examples, whatever the time
    checkpointer: Checkpointer | None = None  # writes checkpoints, and goes on from one
    ranks: Ranks = field(default_factory=Ranks)  # the processes that train together

    def preparation(self, scratch: Path | None = None) -> Preparation:
        """Return how examples are prepared: a resumed training reads as much as it did at first."""
        if self.checkpointer is None:
            return Preparation(scratch, None, self.clock.seconds, self.whole)
        return Preparation(
            scratch, self.checkpointer.vocabulary(), self.checkpointer.reading.seconds, self.whole
        )


def settings_of(order: Order) -> tuple[RunSettings, list[Note]]:
    """Every setting, checked, and what should be said about the choice."""
    if order.model is not None and order.recipe is not None:
        raise ConfigError('--model and --recipe exclude each other; write family = "…" into the recipe')
    if order.minutes is not None and not order.minutes > 0:
        raise ConfigError(f"'minutes' is {order.minutes}; it must be more than 0")
    model, notes = order.model, []
    sets = order.given_sets()
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

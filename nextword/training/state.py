"""The training state: everything that decides what comes next, as tensors and JSON and back.

It has what other trainers save, and also the state that a recurrent model carries from batch to batch, which
they lose. Random numbers and the order of the text are functions of (seed, step) and (seed, epoch, index),
so nothing of them has to be saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from nextword.blocks.states import State, filled, leaves
from nextword.core.errors import DamagedError
from nextword.models.network import device_of
from nextword.training.clock import Plan, first_plan
from nextword.training.job import Job
from nextword.training.optimizers import Optimizer, make_optimizer
from nextword.training.ranks import Engine
from nextword.training.weights import Weights, copy_weights, put_weights, weights_of

_RISEN = 1.0  # nats per token: a loss that has risen this much since the first step has diverged

# Fields that are written to JSON unchanged.
_PLAIN = (
    "step",
    "epoch",
    "index",
    "tokens",
    "seconds",
    "factor",
    "waited",
    "measured",
    "measured_tokens",
    "valid_tokens",
    "skipped",
    "first_loss",
    "last_loss",
)
_ADDED = ("first_loss", "last_loss")  # not in the checkpoints of earlier versions


@dataclass
class Snapshot:
    """Weights that did well on the held-out examples."""

    cost: float  # lower is better
    step: int
    weights: Weights
    values: dict[str, float | None] = field(default_factory=dict)  # what was measured


@dataclass
class TrainingState:
    """The state of a training run after some step."""

    network: Any
    optimizer: Optimizer
    plan: Plan
    engine: Engine = field(default_factory=Engine)  # exchanges gradients between ranks
    step: int = 0  # updates made
    epoch: int = 0
    index: int = 0  # batches of this epoch that are done
    carried: State = None  # what a recurrent network has read before the next batch
    tokens: int = 0  # predictions trained on
    seconds: float = 0.0  # of training, including those before a resume
    factor: float = 1.0  # on the learning rate: lowered at each plateau
    waited: int = 0  # measurements since the best one
    measured: int = -1  # the step of the last validation
    measured_tokens: int = 0  # value of ``tokens`` at that step
    valid_tokens: int = 0  # held-out tokens measured each time; 0: not decided yet
    skipped: int = 0  # batches skipped because of NaN
    first_loss: float = 0.0  # of the first batch, in nats per token; 0: unknown
    last_loss: float = 0.0  # of the newest
    # Before the first step, kept until the first validation; drawn from the seed, so not in a checkpoint.
    initial: Weights | None = None
    best: Snapshot | None = None
    averages: list[Snapshot] = field(default_factory=list)  # the best few, to be averaged at the end
    ema: Weights | None = None

    @property
    def has_diverged(self) -> bool:
        """Return whether the training loss is far above that of the first batch."""
        return bool(self.first_loss) and not self.last_loss <= self.first_loss + _RISEN

    def add_loss(self, loss: float) -> None:
        """Record the loss of an update."""
        self.first_loss = self.first_loss or loss
        self.last_loss = loss

    def to_tensors(self) -> dict[str, Tensor]:
        """Return all tensors of this process by name; no two of them share memory."""
        found: dict[str, Tensor] = {}
        found |= _named("network", weights_of(self.network))
        found |= _named("optimizer", self.optimizer.tensors())
        found |= _named("carried", {str(at): leaf for at, leaf in enumerate(leaves(self.carried))})
        found |= _named("best", {} if self.best is None else self.best.weights)
        found |= _named("ema", self.ema or {})
        for number, each in enumerate(self.averages):
            found |= _named(f"average.{number}", each.weights)
        return _unshared(found)

    def to_json(self) -> dict[str, Any]:
        """Return all numbers."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "plan": self.plan.to_json(),
            "carries": self.carried is not None,
            "best": None if self.best is None else _snapshot_json(self.best),
            "averages": [_snapshot_json(each) for each in self.averages],
        }

    def restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Restore a saved state; one of another model or version raises `DamagedError`."""
        try:
            self._restore(tensors, values)
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
            raise DamagedError(
                f"the checkpoint does not fit this model ({error}); start over with --overwrite"
            ) from error

    def _restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        put_weights(self.network, _part("network", tensors))
        self.optimizer.load(_part("optimizer", tensors))
        for name in _PLAIN:
            default = 0.0 if name in _ADDED else None
            setattr(self, name, type(getattr(self, name))(values.get(name, default)))
        self.plan = Plan.from_json(values["plan"])
        carried = _part("carried", tensors)
        self.carried = None
        if values["carries"]:
            device = device_of(self.network)
            values_carried = [carried[str(at)].clone().to(device) for at in range(len(carried))]
            with torch.no_grad():
                self.carried = filled(self.network.start(1), values_carried)
        self.best = _snapshot_of(values["best"], _part("best", tensors))
        self.averages = [
            each
            for number, about in enumerate(values["averages"])
            if (each := _snapshot_of(about, _part(f"average.{number}", tensors))) is not None
        ]
        ema = _part("ema", tensors)
        self.ema = {name: tensor.clone() for name, tensor in ema.items()} or None
        if self.measured >= 0:
            self.initial = None


def begin(job: Job) -> TrainingState:
    """Make the state before the first step."""
    engine = Engine(job.ranks)
    if job.ranks.is_distributed:
        from nextword.training.distributed.parallel import make_engine

        engine = make_engine(job.network, job.settings, job.ranks, job.build)
    state = TrainingState(
        job.network,
        make_optimizer(job.network, job.settings),
        first_plan(job.steps, job.clock, job.settings.steps),
        engine,
    )
    if job.held_out is not None:
        state.initial = copy_weights(job.network)
    if job.settings.ema:
        state.ema = copy_weights(job.network)
    return state


def _named(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def _part(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name[len(start) :]: tensor for name, tensor in tensors.items() if name.startswith(start)}


def _unshared(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return contiguous tensors on the CPU; one that shares memory with another is copied."""
    seen: set[int] = set()
    found = {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        place = plain.untyped_storage().data_ptr()
        found[name] = plain.clone() if place in seen else plain
        seen.add(place)
    return found


def _snapshot_json(snapshot: Snapshot) -> dict[str, Any]:
    return {"cost": snapshot.cost, "step": snapshot.step, "values": snapshot.values}


def _snapshot_of(about: Any, weights: Weights) -> Snapshot | None:
    if about is None:
        return None
    weights = {name: tensor.clone() for name, tensor in weights.items()}
    if "cost" not in about:  # a checkpoint of version 0.1: nll, bits_per_byte
        values = {name: value for name, value in about.items() if name != "step"}
        return Snapshot(float(about["nll"]), int(about["step"]), weights, values)
    return Snapshot(float(about["cost"]), int(about["step"]), weights, dict(about["values"]))

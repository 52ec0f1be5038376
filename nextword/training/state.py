"""Everything that decides what comes next in a training: one object, as tensors and JSON and back.

What the trusted trainers save, and the state a recurrent model carries from batch to batch, which they
forget. Random numbers and the order of the text are functions of (seed, step) and (seed, epoch, index):
nothing of them has to be kept.
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
from nextword.models.weights import Weights, put_weights, weights_of
from nextword.training.distributed.ranks import Engine
from nextword.training.optimizers import Optimizer
from nextword.training.progress import Plan

# What goes to JSON as it is.
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
)


@dataclass
class Snapshot:
    """Weights that did well on the held-out examples."""

    cost: float  # lower is better
    step: int
    weights: Weights
    values: dict[str, float | None] = field(default_factory=dict)  # what was measured


@dataclass
class TrainingState:
    """Where a training stands."""

    network: Any
    optimizer: Optimizer
    plan: Plan
    engine: Engine = field(default_factory=Engine)  # exchanges gradients, where there are several ranks
    step: int = 0  # updates made
    epoch: int = 0
    index: int = 0  # batches of this epoch that were learned from
    carried: State = None  # what a recurrent network has read before the next batch
    tokens: int = 0  # predictions learned from
    seconds: float = 0.0  # used for learning, in this and earlier sittings
    factor: float = 1.0  # on the rate: what plateaus have left of it
    waited: int = 0  # measurements since the best one
    measured: int = -1  # the step after which the held-out text was measured last
    measured_tokens: int = 0  # predictions learned from until then
    valid_tokens: int = 0  # how much of the held-out text is measured each time; 0: not decided yet
    skipped: int = 0  # batches that were left out, since their loss was no number
    best: Snapshot | None = None
    averages: list[Snapshot] = field(default_factory=list)  # the best few, to be averaged at the end
    ema: Weights | None = None

    def to_tensors(self) -> dict[str, Tensor]:
        """All tensors that this process holds, by name; no two of them share memory."""
        found: dict[str, Tensor] = {}
        found |= _named("network", weights_of(self.network))
        found |= _named("optimizer", self.optimizer.tensors())
        found |= _named("carried", {str(at): leaf for at, leaf in enumerate(leaves(self.carried))})
        found |= _named("best", {} if self.best is None else self.best.weights)
        found |= _named("ema", self.ema or {})
        for number, kept in enumerate(self.averages):
            found |= _named(f"average.{number}", kept.weights)
        return _unshared(found)

    def to_json(self) -> dict[str, Any]:
        """All numbers."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "plan": self.plan.to_json(),
            "carries": self.carried is not None,
            "best": None if self.best is None else _about(self.best),
            "averages": [_about(kept) for kept in self.averages],
        }

    def restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Become the state that was written; a state of another model or version is damaged for us."""
        try:
            self._restore(tensors, values)
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError) as error:
            raise DamagedError(
                f"the saved training does not fit this model ({error}); start the training anew"
            ) from error

    def _restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        put_weights(self.network, _part("network", tensors))
        self.optimizer.load(_part("optimizer", tensors))
        for name in _PLAIN:
            setattr(self, name, type(getattr(self, name))(values[name]))
        self.plan = Plan.from_json(values["plan"])
        carried = _part("carried", tensors)
        self.carried = None
        if values["carries"]:
            tensors_kept = [
                carried[str(at)].clone().to(device_of(self.network)) for at in range(len(carried))
            ]
            with torch.no_grad():
                self.carried = filled(self.network.start(1), tensors_kept)
        self.best = _kept(values["best"], _part("best", tensors))
        self.averages = [
            kept
            for number, about in enumerate(values["averages"])
            if (kept := _kept(about, _part(f"average.{number}", tensors))) is not None
        ]
        ema = _part("ema", tensors)
        self.ema = {name: tensor.clone() for name, tensor in ema.items()} or None


def _named(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def _part(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name[len(start) :]: tensor for name, tensor in tensors.items() if name.startswith(start)}


def _unshared(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous tensors on the CPU; one that shares memory with another is copied."""
    seen: set[int] = set()
    found = {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        place = plain.untyped_storage().data_ptr()
        found[name] = plain.clone() if place in seen else plain
        seen.add(place)
    return found


def _about(kept: Snapshot) -> dict[str, Any]:
    return {"cost": kept.cost, "step": kept.step, "values": kept.values}


def _kept(about: Any, weights: Weights) -> Snapshot | None:
    if about is None:
        return None
    weights = {name: tensor.clone() for name, tensor in weights.items()}
    if "cost" not in about:  # a checkpoint of version 0.1: nll, bits_per_byte
        values = {name: value for name, value in about.items() if name != "step"}
        return Snapshot(float(about["nll"]), int(about["step"]), weights, values)
    return Snapshot(float(about["cost"]), int(about["step"]), weights, dict(about["values"]))

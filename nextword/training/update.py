"""One update of the weights: loss of some batches, gradients through time, clipping, optimizer step.

[IITD-1 "Training a RNN Language Model", "Backpropagation for RNNs"]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from nextword.blocks.states import State
from nextword.core.task import Batch, Objective
from nextword.models.network import device_of
from nextword.models.randomness import TRAINING, seeded
from nextword.models.training import NeuralTrainSettings
from nextword.system.signals import Stop
from nextword.training import weights
from nextword.training.optimizers import rate_factor
from nextword.training.state import TrainingState
from nextword.training.weights import local


class Learned(NamedTuple):
    """What an update reports."""

    loss: float  # per token
    norm: float  # of the gradient, before clipping
    rate: float
    tokens: int
    parts: dict[str, float]  # of the loss, by name

    @property
    def is_finite(self) -> bool:
        """Return whether loss and gradient are finite, so that the update was made."""
        return math.isfinite(self.loss) and math.isfinite(self.norm)


class Summed(NamedTuple):
    """The loss of a batch, summed over the rows of this rank."""

    total: Tensor
    parts: dict[str, Tensor]


@dataclass(frozen=True)
class Learner:
    """The rules of an update; all that changes is in the `TrainingState`."""

    settings: NeuralTrainSettings
    objective: Objective
    stop: Stop = field(default_factory=Stop)

    def update(self, state: TrainingState, batches: Sequence[Batch]) -> Learned:
        """Update the weights on these batches together; every token has the same weight.

        A signal raises `Interrupted` while the gradient is computed: no weight has changed then.
        """
        network, settings = state.network, self.settings
        progress = state.plan.progress(state.step + 1)
        rate = settings.rate * state.factor * rate_factor(settings, progress)
        tokens = sum(batch.tokens for batch in batches)
        state.optimizer.clear()
        may_interrupt = state.step > 0 and not state.engine.ranks.is_distributed
        with self.stop.interrupting() if may_interrupt else nullcontext():
            sums = self.read(state, batches)
        norm = clip([*network.parameters()], settings.clip, partial(state.engine.norm, network))
        ranks = state.engine.ranks
        loss = ranks.total(float(torch.stack([each.total for each in sums]).sum())) / max(1, tokens)
        parts = {
            name: ranks.total(sum(float(each.parts[name]) for each in sums)) / max(1, tokens)
            for name in sums[0].parts
        }
        learned = Learned(loss, norm, rate, tokens, parts)
        if learned.is_finite:
            state.optimizer.step(rate)
            settle(network)
            state.step += 1
            state.tokens += tokens
            if state.ema is not None:
                weights.follow(state.ema, network, settings.ema, state.step)
        return learned

    def read(self, state: TrainingState, batches: Sequence[Batch]) -> list[Summed]:
        """Add up the gradients of the batches of the next update; return the loss of each."""
        tokens = sum(batch.tokens for batch in batches)
        device = device_of(state.network)
        with seeded(device, self.settings.seed, TRAINING, state.step, *state.engine.ranks.key):
            return [
                self._gradient(state, batch, tokens, is_last=number == len(batches))
                for number, batch in enumerate(batches, start=1)
            ]

    def _gradient(self, state: TrainingState, batch: Batch, tokens: int, is_last: bool = True) -> Summed:
        """Add the gradient of this rank's rows of a batch; a carried state is updated."""
        network, engine = state.network, state.engine
        part, own = engine.ranks.part(batch.rows), engine.ranks.rows_of(batch)
        has_rows = part.start < part.stop
        of = self.objective.at(network, state.plan.progress(state.step + 1), has_rows)
        carries = self.objective.carries and has_rows
        after: State = state.carried if carries else None
        total = torch.zeros((), device=device_of(network))
        parts: dict[str, Tensor] = {}
        pieces = of.pieces(own)
        for number, piece in enumerate(pieces, start=1):
            with engine.accumulating(is_last and number == len(pieces)):
                loss, after = engine.loss(network, of, piece, after)
                if loss.total.requires_grad:
                    torch.autograd.backward(loss.total / engine.divisor(tokens))
            total += loss.total.detach()
            for name, value in loss.parts.items():
                parts[name] = parts.get(name, 0.0) + value.detach()
        state.carried = after if carries else None
        return Summed(total, parts)


def settle(network: nn.Module) -> None:
    """Let parts make the conditions on their weights hold again: those of branches sum to 1, for instance."""
    for part in _settling(network):
        part.settle()


_found: WeakKeyDictionary[nn.Module, list[Any]] = WeakKeyDictionary()


def _settling(network: nn.Module) -> list[Any]:
    """Return the parts that `settle`; they are looked for once."""
    if network not in _found:
        _found[network] = [part for part in network.modules() if hasattr(type(part), "settle")]
    return _found[network]


@torch.no_grad()
def clip(
    parameters: Sequence[nn.Parameter], longest: float, whole: Callable[[float], float] | None = None
) -> float:
    """Scale all gradients together to a norm of at most ``longest`` (0: no limit); return the norm before.

    ``whole`` returns the norm of the whole gradient from that of these, if they are a part of it.
    """
    gradients = [local(parameter.grad) for parameter in parameters if parameter.grad is not None]
    norm = float(torch.nn.utils.get_total_norm(gradients))
    norm = norm if whole is None else whole(norm)
    if longest and norm > longest:
        torch._foreach_mul_(gradients, longest / norm)
    return norm

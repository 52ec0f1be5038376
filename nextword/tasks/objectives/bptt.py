"""How far the gradient goes back through time: all the way, a fixed number of steps, or a random one.

∂h_t/∂w = ∂f/∂w + ∂f/∂h_{t-1} · ∂h_{t-1}/∂w [IITD-1 "Backpropagation for RNNs"]. Truncated: the sum stops
after k steps. Random: the second term is kept with probability p and divided by p, else dropped [XMU
"Randomized truncation", whose slide multiplies by π ξ; unbiased is ξ / π]. Its variance grows with the length
of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nextword.blocks.states import State, filled, leaves
from nextword.core.errors import ConfigError
from nextword.models.network import Network, is_recurrent
from nextword.models.training import Bptt


def check(bptt: Bptt, network: Network, family: str) -> None:
    """Check that the model is recurrent: others have no state for the gradient to go back through."""
    if bptt.kind != "full" and not is_recurrent(network):
        raise ConfigError(
            f"'train.bptt' is {bptt.kind}, but a {family} carries no state for the gradient to go back "
            "through; leave it at full and set train.length instead"
        )


def chunks(length: int, bptt: Bptt) -> Iterator[slice]:
    """Yield the pieces of a row within which the gradient flows."""
    size = bptt.chunk or length
    for first in range(0, length, size):
        yield slice(first, min(first + size, length))


class Scaled(torch.autograd.Function):
    """Returns the value unchanged and multiplies its gradient by a scale for each row."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, scale: Tensor) -> Tensor:
        """Return the value itself."""
        ctx.save_for_backward(scale)
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Return ξ / p times the gradient."""
        (scale,) = ctx.saved_tensors
        return gradients[0] * scale, None


Between = Callable[[State], State]  # what happens to a state between two positions


class RandomCut:
    """Between two positions, lets the gradient of each row pass with probability p, multiplied by 1/p."""

    def __init__(self, keep: float) -> None:
        self.keep = keep

    def __call__(self, state: State) -> State:
        """Return the same values with another gradient; the whole state of a row is cut together."""
        tensors = leaves(state)
        if self.keep == 1 or not tensors or not torch.is_grad_enabled():
            return state
        first = tensors[0]
        scale_B = (torch.rand(len(first), device=first.device) < self.keep) / self.keep
        return filled(state, [_cut(tensor, scale_B) for tensor in tensors])


def _cut(tensor: Tensor, scale_B: Tensor) -> Tensor:
    scale = scale_B.to(tensor.dtype).view(-1, *[1] * (tensor.ndim - 1))
    cut: Tensor = Scaled.apply(tensor, scale)  # type: ignore[no-untyped-call]
    return cut

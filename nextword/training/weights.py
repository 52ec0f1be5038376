"""Averaged weights: over time (EMA), or of the best checkpoints.

[Polyak & Juditsky 1992; averaging checkpoints as Vaswani et al. 2017 do]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Weights = dict[str, Tensor]


def local(tensor: Tensor) -> Tensor:
    """Return the rows of a weight that this process holds under sharding; else the tensor itself."""
    to_local: Callable[[], Tensor] | None = getattr(tensor, "to_local", None)
    return tensor if to_local is None else to_local()


@torch.no_grad()
def weights_of(network: nn.Module) -> Weights:
    """Return all weights and buffers that this process holds, by name, not copied."""
    return {name: local(tensor) for name, tensor in network.state_dict().items()}


def copy_weights(network: nn.Module) -> Weights:
    """Copy all weights and buffers; what is shared is copied once."""
    copies: dict[tuple[int, torch.Size], Tensor] = {}
    weights: Weights = {}
    for name, tensor in weights_of(network).items():
        place = (tensor.data_ptr(), tensor.shape)
        if place not in copies:
            copies[place] = tensor.detach().clone()
        weights[name] = copies[place]
    return weights


@torch.no_grad()
def put_weights(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy these weights into the network."""
    for name, tensor in weights_of(network).items():
        tensor.copy_(weights[name])


@torch.no_grad()
def follow(averages: Weights, network: nn.Module, decay: float, step: int) -> None:
    """Update average ← d average + (1 - d) weights; early on d is smaller, to forget the initial weights."""
    d = min(decay, (1 + step) / (10 + step))
    done: set[int] = set()
    for name, tensor in weights_of(network).items():
        average = averages[name]
        if id(average) in done:
            continue
        done.add(id(average))
        if average.is_floating_point():
            average.lerp_(tensor, 1 - d)
        else:
            average.copy_(tensor)


def mean(several: Sequence[Weights]) -> Weights:
    """Average several; numbers that are not floating point are the first one's."""
    return {
        name: torch.stack([weights[name] for weights in several]).mean(dim=0)
        if tensor.is_floating_point()
        else tensor.clone()
        for name, tensor in several[0].items()
    }


@contextmanager
def swapped(network: nn.Module, weights: Mapping[str, Tensor] | None) -> Iterator[None]:
    """Give the network these weights within the block (None: its own)."""
    if weights is None:
        yield
        return
    own = copy_weights(network)
    put_weights(network, weights)
    try:
        yield
    finally:
        put_weights(network, own)

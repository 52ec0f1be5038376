"""The initial weights of a Transformer: the slot "init".

Every part has one matrix that writes to the stream (`Role.OUT`); the others read from it. "Carefully tuned
hyperparameters" [MAUSAM "Transformers (2017) Made Many Changes at Once!"].
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import nn

from nextword.blocks.attention import Attention, Heads
from nextword.blocks.roles import Role, linears, roles_of


def zero(network: nn.Module) -> None:
    """Give reading matrices variance 1 / fan-in and set writing ones to 0: each block begins as the identity.

    Learns more per minute than small random outputs (Zhang et al. 2019, "Fixup", have the same idea).
    """
    for linear, role in _of_stack(network):
        if role == Role.OUT:
            nn.init.zeros_(linear.weight)
        else:
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
        _no_bias(linear)


def gpt2(network: nn.Module) -> None:
    """Draw all from N(0, 0.02²); those that write divided by √(number of parts) (Radford et al. 2019)."""
    found = _of_stack(network)
    parts = sum(role == Role.OUT for _, role in found)
    for linear, role in found:
        nn.init.normal_(linear.weight, std=0.02 / math.sqrt(parts) if role == Role.OUT else 0.02)
        _no_bias(linear)
    _embeddings(network, 0.02)


def xavier(network: nn.Module) -> None:
    """Give every matrix variance 2 / (fan-in + fan-out), embeddings 1 / D (Vaswani et al. 2017).

    Embeddings that are multiplied by √D (``embedding_kind = "scaled"``) are then as large as positions.
    """
    width = 1
    for linear, role in _of_stack(network):
        width = linear.out_features if role == Role.OUT else width
        nn.init.xavier_normal_(linear.weight)
        _no_bias(linear)
    for part in network.modules():
        if isinstance(part, Attention):
            sizes = [count * part.head_size for count in (part.heads, part.kv_heads, part.kv_heads)]
            _xavier(part.from_x, sizes, (1.0, 1.0, 1.0))
    _embeddings(network, width**-0.5)


def t5(network: nn.Module) -> None:
    """Give every matrix variance 1 / fan-in, that of the queries also 1 / K where scores are not scaled.

    Embeddings have variance 1 (Raffel et al. 2020): the scores of tokens need ``output_scale = 0``.
    """
    for linear, _ in _of_stack(network):
        nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
        _no_bias(linear)
    for part in network.modules():
        if isinstance(part, Heads) and part.scale == 1.0:
            with torch.no_grad():
                part.from_x.weight[: part.heads * part.head_size] *= part.head_size**-0.5
    _embeddings(network, 1.0)


def fixup(network: nn.Module) -> None:
    """Set the last matrix of a part to 0, scale He's variance by L^(-1/(2m-2)), m matrices in L parts.

    Zhang et al. 2019: L^(-1/2) for the first matrix of a feed-forward part, L^(-1/6) for Q, K and V.
    """
    found = _of_stack(network)
    parts = sum(role == Role.OUT for _, role in found)
    of_attention = {
        id(each) for part in network.modules() if isinstance(part, Heads) for each in part.modules()
    }
    for linear, role in found:
        if role == Role.OUT:
            nn.init.zeros_(linear.weight)
        else:
            power = -1 / 6 if id(linear) in of_attention else -1 / 2
            nn.init.normal_(linear.weight, std=math.sqrt(2 / linear.in_features) * parts**power)
        _no_bias(linear)


def deepnorm(network: nn.Module) -> None:
    """Give all matrices Xavier's variance, those of values, outputs and feed-forward parts β² of it.

    Wang et al. 2022; β is that of ``norm_place = "deepnorm"``.
    """
    for stack in _stacks(network):
        found = (getattr(part, "beta", None) for part in stack.modules())
        beta = next((each for each in found if isinstance(each, float)), 1.0)
        for linear, _ in linears(stack):
            nn.init.xavier_normal_(linear.weight, gain=beta)
            _no_bias(linear)
        for part in stack.modules():
            if isinstance(part, Attention):
                sizes = [count * part.head_size for count in (part.heads, part.kv_heads, part.kv_heads)]
                _xavier(part.from_x, sizes, (1.0, 1.0, beta))
            elif isinstance(part, Heads) and hasattr(part, "from_source"):
                _xavier(part.from_x, [part.from_x.out_features], (1.0,))
                size = part.kv_heads * part.head_size
                _xavier(cast(nn.Linear, part.from_source), [size, size], (1.0, beta))


def mup(network: nn.Module) -> None:
    """Give all matrices variance 1 / fan-in, and tokens' vectors one that does not depend on the width.

    Yang et al. 2022, with ``base_width``, which also scales the scores of tokens and the rates of matrices.
    """
    for linear, _ in _of_stack(network):
        nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
        _no_bias(linear)
    _embeddings(network, 0.05)


def _xavier(linear: nn.Linear, sizes: list[int], gains: tuple[float, ...]) -> None:
    """Draw matrices that are stored as one."""
    for rows, gain in zip(torch.split(linear.weight.detach(), sizes), gains, strict=True):
        nn.init.xavier_normal_(rows, gain=gain)


def _embeddings(network: nn.Module, std: float) -> None:
    """Draw the tokens' vectors with this standard deviation, also where they are products."""
    drawn = set()
    for part in network.modules():
        if hasattr(part, "draw"):
            cast(Any, part).draw(std)
            drawn |= {id(weight) for weight in part.parameters()}
    for name, role in roles_of(network).items():
        if role == Role.EMBEDDING and id(network.get_parameter(name)) not in drawn:
            nn.init.normal_(network.get_parameter(name), std=std)


def _of_stack(network: nn.Module) -> list[tuple[nn.Linear, Role]]:
    """Return the matrices of the layers; gates keep their own initial weights."""
    found = [each for stack in _stacks(network) for each in linears(stack)]
    return [(linear, role) for linear, role in found if role != Role.GATE]


def _stacks(network: nn.Module) -> list[nn.Module]:
    """Return the layers; in an encoder-decoder those of both."""
    names = ("source_stack", "stack")
    return [cast(nn.Module, getattr(network, name)) for name in names if hasattr(network, name)]


def _no_bias(linear: nn.Linear) -> None:
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)

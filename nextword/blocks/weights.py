"""The initial weights of a Transformer: the slot "init".

Every part has one matrix that writes to the stream (`Role.OUT`); the others read from it. "Carefully tuned
hyperparameters" [MAUSAM "Transformers (2017) Made Many Changes at Once!"].
"""

from __future__ import annotations

import math

from torch import nn

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
    for name, role in roles_of(network).items():
        if role == Role.EMBEDDING:
            nn.init.normal_(network.get_parameter(name), std=0.02)


def _of_stack(network: nn.Module) -> list[tuple[nn.Linear, Role]]:
    """Return the matrices of the layers; gates keep their own initial weights."""
    return [(linear, role) for linear, role in linears(network.get_submodule("stack")) if role != Role.GATE]


def _no_bias(linear: nn.Linear) -> None:
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)

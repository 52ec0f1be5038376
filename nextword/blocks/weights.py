"""The first weights of a Transformer: the slot "init".

Every part has one matrix that writes to the stream, called ``out``; the others read from it. "Carefully tuned
hyperparameters" [MAUSAM "Transformers (2017) Made Many Changes at Once!"].
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import nn


def zero(network: nn.Module) -> None:
    """Matrices that read have variance 1 / fan-in, those that write are 0: each block begins as nothing.

    Learns faster a minute than small random outputs (Zhang et al. 2019, "Fixup", have the same idea).
    """
    for name, linear in _linears(network):
        if name.endswith(".out"):
            nn.init.zeros_(linear.weight)
        else:
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
        _no_bias(linear)


def gpt2(network: nn.Module) -> None:
    """All from N(0, 0.02²); those that write divided by √(number of parts) (Radford et al. 2019)."""
    found = list(_linears(network))
    parts = sum(name.endswith(".out") for name, _ in found)
    for name, linear in found:
        nn.init.normal_(linear.weight, std=0.02 / math.sqrt(parts) if name.endswith(".out") else 0.02)
        _no_bias(linear)
    nn.init.normal_(network.get_parameter("embedding.weight_VE"), std=0.02)


def _linears(network: nn.Module) -> Iterator[tuple[str, nn.Linear]]:
    stack = network.get_submodule("stack")
    for name, module in stack.named_modules():
        if isinstance(module, nn.Linear) and not name.endswith(".gate"):
            yield name, module


def _no_bias(linear: nn.Linear) -> None:
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)

"""Connections between stacked layers, of any family: how what went into a layer goes on beside what came out.

[IITD-2 "Is Vanishing/Exploding Gradient Just an RNN Problem?"]: direct connections let the gradient flow.
Slot "connection": a class of (inputs, outputs) with ``width``, the size of what it gives.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

CARRY = -2.0  # bias of a new highway gate: nearly closed, so that what came in goes on (Srivastava et al.)


class PlainJoin(nn.Module):
    """What came out, alone."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.width = outputs

    def forward(self, x_BTD: Tensor, y_BTH: Tensor) -> Tensor:
        """y."""
        return y_BTH


class ResidualJoin(nn.Module):
    """The identity connection preserves information by default (He et al. 2015)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.width = outputs
        self.fit = fitting(inputs, outputs)

    def forward(self, x_BTD: Tensor, y_BTH: Tensor) -> Tensor:
        """y = F(x) + x."""
        return y_BTH + self.fit(x_BTD)


class DenseJoin(nn.Module):
    """Every layer sees what all earlier layers gave (DenseNet, Huang et al. 2017)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.width = inputs + outputs

    def forward(self, x_BTD: Tensor, y_BTH: Tensor) -> Tensor:
        """[x; F(x)]: x itself holds what the layers before gave."""
        return torch.cat([x_BTD, y_BTH], dim=-1)


class HighwayJoin(nn.Module):
    """A dynamic gate chooses between the identity and the layer (Srivastava et al. 2015)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.width = outputs
        self.fit = fitting(inputs, outputs)
        self.gate = nn.Linear(inputs, outputs)
        nn.init.constant_(self.gate.bias, CARRY)

    def forward(self, x_BTD: Tensor, y_BTH: Tensor) -> Tensor:
        """y = T(x) ∘ F(x) + (1 - T(x)) ∘ x, T(x) = σ(W_T x + b_T)."""
        return torch.lerp(self.fit(x_BTD), y_BTH, torch.sigmoid(self.gate(x_BTD)))


def fitting(inputs: int, outputs: int) -> nn.Module:
    """The identity where sizes agree, else a projection, as He et al. do where they change."""
    return nn.Identity() if inputs == outputs else nn.Linear(inputs, outputs, bias=False)

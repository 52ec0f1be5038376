"""Activation functions, element by element; the slot "activation".

Rows of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations and Applications?"];
ReLU²: So et al. 2021. The names are the catalog's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


class _SquaredReLU(torch.autograd.Function):
    """Compute max(0, u)² and keep one tensor instead of two, as the derivative is 2 max(0, u)."""

    @staticmethod
    def forward(ctx: Any, u: Tensor) -> Tensor:
        positive = torch.relu(u)
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (positive,) = ctx.saved_tensors
        return (dy * positive).mul_(2.0)


def relu2(u: Tensor) -> Tensor:
    """Compute max(0, u)²."""
    if u.requires_grad and torch.is_grad_enabled():
        squared: Tensor = _SquaredReLU.apply(u)  # type: ignore[no-untyped-call]
        return squared
    return torch.relu(u).square_()


def relu(u: Tensor) -> Tensor:
    """Compute max(0, u)."""
    return F.relu(u)


def gelu(u: Tensor) -> Tensor:
    """Compute u Φ(u), with the exact distribution function Φ of the normal (Hendrycks & Gimpel 2016)."""
    return F.gelu(u)


def gelu_tanh(u: Tensor) -> Tensor:
    """Compute ½ u (1 + tanh(√(2/π) (u + 0.044715 u³))), the approximation of GELU in GPT-2."""
    return F.gelu(u, approximate="tanh")


def swish(u: Tensor) -> Tensor:
    """Compute u σ(u), also called SiLU."""
    return F.silu(u)


def elu(u: Tensor) -> Tensor:
    """Compute u above 0 and exp(u) - 1 below."""
    return F.elu(u)


def selu(u: Tensor) -> Tensor:
    """Compute ELU scaled so that mean 0 and variance 1 are preserved (Klambauer et al. 2017)."""
    return F.selu(u)


def sigmoid(u: Tensor) -> Tensor:
    """Compute 1 / (1 + exp(-u))."""
    return torch.sigmoid(u)


def softplus(u: Tensor) -> Tensor:
    """Compute log(1 + exp(u))."""
    return F.softplus(u)


def tanh(u: Tensor) -> Tensor:
    """Compute (exp(u) - exp(-u)) / (exp(u) + exp(-u))."""
    return torch.tanh(u)


def identity(u: Tensor) -> Tensor:
    """Return u itself, for a linear part."""
    return u

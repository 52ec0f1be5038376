"""Normalization of a vector of features: the slot "norm".

"LayerNorms" [MAUSAM "Transformers (2017) Made Many Changes at Once!"]; LayerNorm: Ba et al. 2016; RMSNorm:
Zhang & Sennrich 2019. A norm is made from the width, whether it has a bias, and eps, which prevents 1/0.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.rms import rms_norm
from nextword.blocks.roles import Role, Roles


class LayerNorm(nn.Module):
    """y = g ∘ (x - mean) / sqrt(variance + eps) + b, over the features."""

    roles: ClassVar[Roles] = {"gain_D": Role.NORM, "bias_D": Role.BIAS}

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gain_D = nn.Parameter(torch.ones(width))
        self.bias_D = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Norm to mean 0 and variance 1, then apply gain and bias."""
        return F.layer_norm(x_BTD, self.gain_D.shape, self.gain_D, self.bias_D, self.eps)


class RMSNorm(nn.Module):
    """y = g ∘ x / sqrt(mean(x²) + eps): without subtracting the mean, without a bias."""

    roles: ClassVar[Roles] = {"gain_D": Role.NORM}

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gain_D = nn.Parameter(torch.ones(width))

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Norm to root mean square 1, then apply the gain."""
        return rms_norm(x_BTD, self.gain_D, self.eps)


class NoNorm(nn.Module):
    """y = x."""

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Return the input."""
        return x_BTD

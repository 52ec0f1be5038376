"""Normalization of a vector of features: the slot "norm".

"LayerNorms" [MAUSAM "Transformers (2017) Made Many Changes at Once!"]; LayerNorm: Ba et al. 2016; RMSNorm:
Zhang & Sennrich 2019. A norm is made from the width, whether it has a bias, and eps, which prevents 1/0. How
many weights one has says ``weights(width, bias)``.
"""

from __future__ import annotations

import math
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

    @staticmethod
    def weights(width: int, bias: bool) -> int:
        """Count gains, and biases if there are any."""
        return 2 * width if bias else width

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

    @staticmethod
    def weights(width: int, bias: bool) -> int:
        """Count gains."""
        return width

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Norm to root mean square 1, then apply the gain."""
        return rms_norm(x_BTD, self.gain_D, self.eps)


class NoNorm(nn.Module):
    """y = x."""

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()

    @staticmethod
    def weights(width: int, bias: bool) -> int:
        """Count nothing."""
        return 0

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Return the input."""
        return x_BTD


class PartialRMSNorm(RMSNorm):
    """y = g ∘ x / sqrt(mean(x²) + eps) with the mean over the first 6.75 % of the features only.

    Zhang & Sennrich 2019, "pRMSNorm", with the share that the table [MAUSAM] measured.
    """

    share: ClassVar[float] = 0.0675

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__(width, bias, eps)
        self.first = max(1, math.ceil(width * self.share))

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Norm by the root mean square of the first features, in float32 even for bfloat16."""
        x_BTD = x_BTD.float() if x_BTD.dtype == torch.bfloat16 else x_BTD
        mean_BT1 = x_BTD[..., : self.first].square().mean(dim=-1, keepdim=True)
        return x_BTD * torch.rsqrt(mean_BT1 + self.eps) * self.gain_D


class DynamicTanh(nn.Module):
    """y = g ∘ tanh(α x) + b: bounds the features without looking at their sum (Zhu et al. 2025, "DyT")."""

    roles: ClassVar[Roles] = {"gain_D": Role.NORM, "bias_D": Role.BIAS, "alpha": Role.SCALE}

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.full((), 0.5))
        self.gain_D = nn.Parameter(torch.ones(width))
        self.bias_D = nn.Parameter(torch.zeros(width)) if bias else None

    @staticmethod
    def weights(width: int, bias: bool) -> int:
        """Count α, gains, and biases if there are any."""
        return 1 + (2 * width if bias else width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Bound, then apply gain and bias."""
        y_BTD = self.gain_D * torch.tanh(self.alpha * x_BTD)
        return y_BTD if self.bias_D is None else y_BTD + self.bias_D


class ScaleNorm(nn.Module):
    """y = g x / |x|: one gain for all features, √D at first (Nguyen & Salazar 2019)."""

    roles: ClassVar[Roles] = {"gain": Role.SCALE}

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.full((), math.sqrt(width)))

    @staticmethod
    def weights(width: int, bias: bool) -> int:
        """Count the gain."""
        return 1

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Norm to length g."""
        x_BTD = x_BTD.float() if x_BTD.dtype == torch.bfloat16 else x_BTD
        return x_BTD * (self.gain * torch.rsqrt(x_BTD.square().sum(dim=-1, keepdim=True) + self.eps))


class Shift(nn.Module):
    """y = x + b with one number b, 0 at first: what ends the stream of a Fixup decoder."""

    roles: ClassVar[Roles] = {"shift": Role.BIAS}

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(()))

    @staticmethod
    def weights(width: int, bias: bool) -> int:
        """Count b."""
        return 1

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Add b."""
        return x_BTD + self.shift


class ShiftScale(Shift):
    """y = (x + b) s with two numbers, 0 and 1 at first: what ends the stream of a Fixup encoder."""

    roles: ClassVar[Roles] = {"shift": Role.BIAS, "scale": Role.SCALE}

    def __init__(self, width: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__(width, bias, eps)
        self.scale = nn.Parameter(torch.ones(()))

    @staticmethod
    def weights(width: int, bias: bool) -> int:
        """Count b and s."""
        return 2

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Add b, then multiply by s."""
        return super().forward(x_BTD) * self.scale

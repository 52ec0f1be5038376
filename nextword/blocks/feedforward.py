"""Feed-forward parts of a Transformer block: every position by itself, wide in the middle; slot "ffn".

"Interspersing of Attention and MLP layers" [MAUSAM "Transformers (2017) Made Many Changes at Once!"]; gated
ones: Shazeer 2020. A variant is a class that names its activation. F, the inner width, is 4 D; a gated part
has three matrices instead of two, so its F is 8/3 D for as many weights. A part is given the `Reading` of the
pass, which says which positions are tokens; most parts need only the features.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.cache import Reading
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.core.catalog import find


class FeedForward(nn.Module):
    """y = φ(x W₁ + b₁) W₂ + b₂."""

    phi: ClassVar[str] = "relu"  # slot "activation"
    ratio: ClassVar[float] = 4.0  # F / D
    roles: ClassVar[Roles] = {"out": Role.OUT}

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.activation = find("activation", self.phi)
        self.inner = nn.Linear(shape.width, shape.inner, shape.bias)
        self.out = nn.Linear(shape.inner, shape.width, shape.bias)

    def forward(self, x_BTD: Tensor, reading: Reading | None = None) -> Tensor:
        """Widen, activate and project back."""
        y_BTD: Tensor = self.out(self.activation(self.inner(x_BTD)))
        return y_BTD

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count two matrices."""
        return linear(shape.width, shape.inner, load.tokens, shape.bias) + linear(
            shape.inner, shape.width, load.tokens, shape.bias
        )


class GatedFeedForward(nn.Module):
    """y = (φ(x W + b) ∘ (x V + c)) W₂ + b₂; W and V are one matrix, the activated half first."""

    phi: ClassVar[str] = "sigmoid"  # slot "activation"
    ratio: ClassVar[float] = 8 / 3
    roles: ClassVar[Roles] = {"out": Role.OUT}

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.activation = find("activation", self.phi)
        self.inner = nn.Linear(shape.width, 2 * shape.inner, shape.bias)
        self.out = nn.Linear(shape.inner, shape.width, shape.bias)

    def forward(self, x_BTD: Tensor, reading: Reading | None = None) -> Tensor:
        """Multiply one half by the activated other half, and project back."""
        gate_BTF, value_BTF = self.inner(x_BTD).chunk(2, dim=-1)
        y_BTD: Tensor = self.out(self.activation(gate_BTF) * value_BTF)
        return y_BTD

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count three matrices."""
        return linear(shape.width, 2 * shape.inner, load.tokens, shape.bias) + linear(
            shape.inner, shape.width, load.tokens, shape.bias
        )


class ReLU(FeedForward):
    """φ = ReLU: the Transformer of 2017."""


class ReLU2(FeedForward):
    """φ = ReLU²: sparse and steep; learns most per minute of the plain ones (So et al. 2021)."""

    phi = "relu2"


class GELU(FeedForward):
    """φ = GELU, exact."""

    phi = "gelu"


class GELUTanh(FeedForward):
    """φ = GELU by tanh, as in GPT-2."""

    phi = "gelu-tanh"


class Swish(FeedForward):
    """φ = Swish."""

    phi = "swish"


class ELU(FeedForward):
    """φ = ELU."""

    phi = "elu"


class SELU(FeedForward):
    """φ = SELU."""

    phi = "selu"


class Sigmoid(FeedForward):
    """φ = σ."""

    phi = "sigmoid"


class Softplus(FeedForward):
    """φ = softplus."""

    phi = "softplus"


class GLU(GatedFeedForward):
    """Gate σ (Dauphin et al. 2017)."""


class ReGLU(GatedFeedForward):
    """Gate ReLU."""

    phi = "relu"


class GeGLU(GatedFeedForward):
    """Gate GELU."""

    phi = "gelu"


class GeGLUTanh(GatedFeedForward):
    """Gate GELU by tanh: T5 1.1's."""

    phi = "gelu-tanh"


class SwiGLU(GatedFeedForward):
    """Gate Swish: Llama's."""

    phi = "swish"


class LiGLU(GatedFeedForward):
    """Gate without activation: bilinear."""

    phi = "identity"


class Fixup(FeedForward):
    """y = (ReLU(x W₁) + b) W₂ with one number b: the only bias of Fixup's part (Zhang et al. 2019)."""

    roles: ClassVar[Roles] = {"out": Role.OUT, "shift": Role.BIAS}

    def __init__(self, shape: Shape) -> None:
        super().__init__(replace(shape, bias=False))
        self.shift = nn.Parameter(torch.zeros(()))

    def forward(self, x_BTD: Tensor, reading: Reading | None = None) -> Tensor:
        """Widen, activate, shift and project back."""
        y_BTD: Tensor = self.out(self.activation(self.inner(x_BTD)) + self.shift)
        return y_BTD

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count two matrices and b."""
        return super().cost(replace(shape, bias=False), load) + weights(1)

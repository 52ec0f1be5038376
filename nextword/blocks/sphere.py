"""nGPT: features and weights are vectors of length 1, and every layer moves along the sphere.

Loshchilov et al. 2025. h ← norm(h + α ∘ (norm(f(h)) - h)): a part proposes a point, α is how far to go. Rows
of matrices that read the stream, and columns of those that write to it, have length 1 after every update
(`settle`), so that products are cosines; learned scales give the softmaxes their range. There are no norms
and no weight decay. A model needs all of it: the preset ``modern/ngpt`` sets it.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.cache import Reading
from nextword.blocks.cost import Cost, Load, weights
from nextword.blocks.embeddings import Embedding
from nextword.blocks.feedforward import SwiGLU
from nextword.blocks.heads import SoftmaxHead
from nextword.blocks.joins import Join
from nextword.blocks.losses import linear_cross_entropy, linear_log_probs
from nextword.blocks.roles import Role, Roles, linears
from nextword.blocks.shape import Shape
from nextword.blocks.stack import Stack

STEP = 0.05  # how far a new part goes


class SphereJoin(Join):
    """x ← norm(x + α ∘ (norm(f(x)) - x)), one α for each feature."""

    roles: ClassVar[Roles] = {"alpha_D": Role.SCALE}

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.alpha_D = nn.Parameter(torch.full((outputs,), outputs**-0.5))

    @staticmethod
    def cost(width: int, tokens: int) -> Cost:
        """Count α."""
        return weights(width)

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Begin on the sphere."""
        return unit(x_BTD)

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Go a little towards what the part gives."""
        alpha_D = self.alpha_D.abs() * (STEP * self.width**0.5)
        return unit(torch.lerp(stream.float(), unit(y_BTH), alpha_D))


class SphereQKNorm(nn.Module):
    """Queries and keys have length 1, times a scale s for each feature; scores are multiplied by √K."""

    roles: ClassVar[Roles] = {"scale_K": Role.SCALE}

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.root = shape.width**0.5
        self.scale_K = nn.Parameter(torch.full((shape.head_size,), shape.width**-0.5))

    @classmethod
    def cost(cls, shape: Shape) -> Cost:
        """Count the scales."""
        return weights(shape.head_size)

    def forward(self, x_BTNK: Tensor) -> Tensor:
        """Norm, then scale."""
        return unit(x_BTNK) * (self.scale_K * self.root)


class SphereSwiGLU(SwiGLU):
    """y = (swish(s ∘ x W √D) ∘ (r ∘ x V)) W₂: both halves of the inner vector have scales."""

    roles: ClassVar[Roles] = {**SwiGLU.roles, "scale_F": Role.SCALE}

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.root = shape.width**0.5
        self.scale_F = nn.Parameter(torch.ones(2 * shape.inner))

    def forward(self, x_BTD: Tensor, reading: Reading | None = None) -> Tensor:
        """Scale both halves, activate one of them."""
        gate_BTF, value_BTF = (self.inner(x_BTD) * self.scale_F).chunk(2, dim=-1)
        y_BTD: Tensor = self.out(self.activation(gate_BTF * self.root) * value_BTF)
        return y_BTD

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the scales, too."""
        return super().cost(shape, load) + weights(2 * shape.inner)


class SphereEmbedding(Embedding):
    """Vectors of length 1."""

    def draw(self, std: float) -> None:
        """Draw random directions."""
        super().draw(std)
        self.settle()

    @torch.no_grad()
    def settle(self) -> None:
        """Give every vector length 1."""
        self.weight_VE.copy_(unit(self.weight_VE))


class SphereHead(SoftmaxHead):
    """logits = s ∘ (U h): cosines, with a scale for each token; √D at first."""

    roles: ClassVar[Roles] = {**SoftmaxHead.roles, "scale_V": Role.SCALE}

    def __init__(
        self,
        width: int,
        vocab_size: int,
        forbidden: tuple[int, ...] = (),
        embedding_VE: nn.Parameter | None = None,
        bias: bool = True,
        mask: bool = True,
    ) -> None:
        super().__init__(width, vocab_size, forbidden, embedding_VE, bias, mask)
        self.root = float(width)
        self.scale_V = nn.Parameter(torch.full((vocab_size,), width**-0.5))
        self.settle()

    @classmethod
    def cost(cls, width: int, vocab_size: int, tokens: int, tied: bool, settings: object = None) -> Cost:
        """Count the scales, too."""
        return super().cost(width, vocab_size, tokens, tied) + weights(vocab_size)

    @torch.no_grad()
    def settle(self) -> None:
        """Give every row length 1."""
        self.weight_VD.copy_(unit(self.weight_VD))

    def scaled(self) -> Tensor:
        """Return the rows with their scales."""
        return self.weight_VD[: self.vocab_size] * (self.scale_V * self.root)[:, None]

    def logits(self, features_ND: Tensor) -> Tensor:
        """Return the logits; a forbidden token has -inf."""
        return torch.addmm(self.bias_V + self.closed_V, features_ND, self.scaled().T)

    def score(self, features_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Return log p of these tokens."""
        return linear_log_probs(features_ND, self.scaled(), self.bias_V + self.closed_V, ids_N)

    def loss(self, features_ND: Tensor, targets_N: Tensor, smoothing: float = 0.0) -> Tensor:
        """Compute Σ -log p(target)."""
        bias_V = self.bias_V + self.closed_in_loss_V
        return linear_cross_entropy(features_ND, self.scaled(), bias_V, targets_N, smoothing)


class SphereStack(Stack):
    """The plain stack, whose matrices stay on the sphere."""

    @torch.no_grad()
    def settle(self) -> None:
        """Give rows that read the stream, and columns that write to it, length 1."""
        for linear, role in linears(self):
            linear.weight.copy_(unit(linear.weight, dim=0 if role == Role.OUT else -1))


def sphere(network: nn.Module) -> None:
    """Draw random directions for all matrices: the init of nGPT."""
    for linear, _ in linears(network.get_submodule("stack")):
        nn.init.normal_(linear.weight)
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)
    for part in network.modules():
        if isinstance(part, SphereStack | SphereEmbedding | SphereHead):
            part.settle()


def grow(head_size: int) -> float:
    """Return √K: queries and keys have length 1 (Loshchilov et al. 2025)."""
    return math.sqrt(head_size)


def unit(x: Tensor, dim: int = -1) -> Tensor:
    """Return vectors of length 1, in float32 even for bfloat16."""
    return F.normalize(x.float() if x.dtype == torch.bfloat16 else x, dim=dim, eps=1e-8)

"""The Weighted Transformer: every head is a branch of its own, attention and feed-forward in one; slot
"block".

Ahmed et al. 2017, a row of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations
and Applications?"]: y = Σ αᵢ FFN(κᵢ headᵢ Wᵢ). κ and α are positive and sum to 1; after every update they are
made so again.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.block import Chain, make_part, sum_parts
from nextword.blocks.cost import Cost, Load, weights
from nextword.blocks.positions import NoPosition
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.core.catalog import find


class Branches(nn.Module):
    """In the place of attention's output matrix: each head goes by itself through one feed-forward part."""

    roles: ClassVar[Roles] = {"kappa_N": Role.SCALE, "alpha_N": Role.SCALE, "merge": Role.MATRIX}

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.merge = nn.Linear(shape.heads * shape.head_size, shape.width, shape.biased_attention)
        self.ffn = find("ffn", shape.ffn)(shape)
        self.kappa_N = nn.Parameter(torch.empty(shape.heads).uniform_(0.0, 1.0))
        self.alpha_N = nn.Parameter(torch.empty(shape.heads).uniform_(0.0, 1.0))
        self.settle()

    @torch.no_grad()
    def settle(self) -> None:
        """Make the weights of the branches positive and their sum 1."""
        for weight_N in (self.kappa_N, self.alpha_N):
            weight_N.relu_()
            weight_N.div_((weight_N + 1e-4).sum())

    def forward(self, heads_BTX: Tensor) -> Tensor:
        """Sum the branches, one after another: all at once would hold N times the inner features."""
        parts_NDK = torch.unflatten(self.merge.weight, 1, (self.heads, -1)).unbind(1)
        y_BTD = torch.zeros(())
        for n, (head_BTK, part_DK) in enumerate(
            zip(heads_BTX.chunk(self.heads, dim=-1), parts_NDK, strict=True)
        ):
            branch_BTD = nn.functional.linear(head_BTK, part_DK, self.merge.bias) * self.kappa_N[n]
            y_BTD = y_BTD + self.alpha_N[n] * self.ffn(branch_BTD)
        return y_BTD


class Weighted(Chain):
    """Branches over the tokens and, if the order has an X, branches over the source; no separate F."""

    @staticmethod
    def order_of(shape: Shape) -> str:
        """Leave out the feed-forward parts, which the branches contain."""
        return shape.order.replace("F", "")

    def make(self, letter: str, shape: Shape, position: NoPosition) -> nn.Module:
        """Return an attention whose heads are branches."""
        attention: Any = make_part(letter, shape, position)
        attention.out = Branches(shape)
        return attention

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the attentions and, for each, one feed-forward part that is applied to all branches."""
        order = cls.order_of(shape)
        ffn: Cost = find("ffn", shape.ffn).cost(shape, load)
        branches = ffn.applied(shape.heads) + weights(2 * shape.heads)
        return sum_parts(shape, load, order) + branches.times(len(order))

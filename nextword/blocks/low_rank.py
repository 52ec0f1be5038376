"""A vector for each token by two narrow matrices: what gates and decays are made of, where they are many."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.cost import Cost, Load, linear
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape


class LowRank(nn.Module):
    """x → f(x A) B + b, as wide as all heads; whoever uses it applies f between ``down`` and ``up``."""

    roles: ClassVar[Roles] = {"down": Role.GATE, "up": Role.GATE}

    def __init__(self, shape: Shape, rank: int, bias: Tensor | None = None) -> None:
        super().__init__()
        inner = shape.heads * shape.head_size
        self.down = nn.Linear(shape.width, rank, bias=False)
        self.up = nn.Linear(rank, inner, bias=bias is not None)
        with torch.no_grad():
            self.down.weight.normal_(std=0.1 * shape.width**-0.5)  # at first nearly the bias alone
            self.up.weight.normal_(std=rank**-0.5)
            if bias is not None:
                self.up.bias.copy_(bias)

    @staticmethod
    def cost(shape: Shape, load: Load, rank: int, bias: bool = True) -> Cost:
        """Count both matrices and the bias."""
        inner = shape.heads * shape.head_size
        return linear(shape.width, rank, load.tokens) + linear(rank, inner, load.tokens, bias)

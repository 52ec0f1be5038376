"""A feed-forward part in a package of its own: one class, and one line of its entry points."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Cubed(nn.Module):
    """y = max(0, x W₁)³ W₂."""

    ratio = 2.0  # F / D

    def __init__(self, shape) -> None:
        super().__init__()
        self.inner = nn.Linear(shape.width, shape.inner, shape.bias)
        self.out = nn.Linear(shape.inner, shape.width, shape.bias)

    def forward(self, x_BTD: Tensor, reading=None) -> Tensor:
        """Widen, cube what is positive, and project back."""
        return self.out(torch.relu(self.inner(x_BTD)) ** 3)

"""Norms of queries and keys before their product: the slot "qk_norm"."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.cost import Cost, weights
from nextword.blocks.rms import rms_norm
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape


class QKNorm(nn.Module):
    """Norm queries and keys to root mean square 1, times a gain: scores stay bounded (Henry et al. 2020)."""

    roles: ClassVar[Roles] = {"query_gain_K": Role.NORM, "key_gain_K": Role.NORM}

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.eps, self.heads = shape.norm_eps, shape.heads
        self.query_gain_K = nn.Parameter(torch.ones(shape.head_size))
        self.key_gain_K = nn.Parameter(torch.ones(shape.head_size))

    @classmethod
    def cost(cls, shape: Shape) -> Cost:
        """Count the gains."""
        return weights(2 * shape.head_size)

    def forward(self, x_BTNK: Tensor) -> Tensor:
        """Norm the heads; query heads come first, then key heads."""
        kinds = (self.heads, x_BTNK.shape[2] - self.heads)
        gains = zip((self.query_gain_K, self.key_gain_K), kinds, strict=True)
        gain_NK = torch.cat([gain_K.expand(count, -1) for gain_K, count in gains])
        return rms_norm(x_BTNK, gain_NK, self.eps)


class NoQKNorm(nn.Module):
    """Leave queries and keys as they are."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()

    @classmethod
    def cost(cls, shape: Shape) -> Cost:
        """Count nothing."""
        return Cost()

    def forward(self, x_BTNK: Tensor) -> Tensor:
        """Return the input."""
        return x_BTNK

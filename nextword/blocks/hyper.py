"""Hyper-connections: several streams side by side, which layers read and write with learned shares (slot
"join").

Zhu et al. 2025, the static form: a layer reads Σ α h, writes β times its output to every stream, and the
streams are mixed by a small matrix. At first it is a residual connection, up to small random shares.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.cost import Cost, weights
from nextword.blocks.joins import Join
from nextword.blocks.roles import Role, Roles

LANES = 4


class HyperConnections(Join):
    """Four streams; the end is their mean."""

    roles: ClassVar[Roles] = {"read_L": Role.SCALE, "write_L": Role.SCALE, "mix_LL": Role.SCALE}

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.read_L = nn.Parameter(torch.full((LANES,), 1 / LANES).add_(torch.empty(LANES).normal_(std=0.02)))
        self.write_L = nn.Parameter(torch.ones(LANES).add_(torch.empty(LANES).normal_(std=0.02)))
        self.mix_LL = nn.Parameter(torch.eye(LANES))

    @staticmethod
    def cost(width: int, tokens: int) -> Cost:
        """Count the shares, and the product that mixes the streams."""
        return weights(2 * LANES) + Cost(LANES**2, LANES**2 * width * tokens)

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Begin with copies."""
        return x_BTD.repeat(1, 1, LANES)

    def look(self, stream: Tensor) -> Tensor:
        """Read the streams with their shares."""
        lanes_BTLD = torch.unflatten(stream, -1, (LANES, -1))
        return (lanes_BTLD * self.read_L[:, None].to(stream.dtype)).sum(dim=-2)

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Mix the streams, and write to each."""
        lanes_BTLD = self.mix_LL.to(stream.dtype) @ torch.unflatten(stream, -1, (LANES, -1))
        return (lanes_BTLD + self.write_L[:, None].to(stream.dtype) * y_BTH[..., None, :]).flatten(-2)

    def end(self, stream: Tensor) -> Tensor:
        """Return the mean of the streams."""
        return torch.unflatten(stream, -1, (LANES, -1)).mean(dim=-2)

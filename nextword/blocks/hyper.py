"""Hyper-connections: several streams side by side, which layers read and write with learned shares (slot
"join").

Zhu et al. 2025: a layer reads Σ α h, writes β times its output to every stream, and the streams are mixed by
a small matrix A. At first it is a residual connection, up to small random shares. Dynamic: what is in the
streams changes all shares a little, α + s tanh(norm(h) W).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.cost import Cost, weights
from nextword.blocks.joins import Join
from nextword.blocks.roles import Role, Roles

LANES = 4


class HyperConnections(Join):
    """Four streams; the end is their mean."""

    lanes = LANES
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
        lanes_BTLD = lanes(stream)
        return (lanes_BTLD * self.read_L[:, None].to(stream.dtype)).sum(dim=-2)

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Mix the streams, and write to each."""
        lanes_BTLD = self.mix_LL.to(stream.dtype) @ lanes(stream)
        return (lanes_BTLD + self.write_L[:, None].to(stream.dtype) * y_BTH[..., None, :]).flatten(-2)

    def end(self, stream: Tensor) -> Tensor:
        """Return the mean of the streams."""
        return lanes(stream).mean(dim=-2)


class DynamicHyperConnections(HyperConnections):
    """α, β and A also depend on what is in the streams; 0.01 of it at first."""

    roles: ClassVar[Roles] = {
        **HyperConnections.roles, "shares_DX": Role.GATE, "scale_3": Role.SCALE,
    }  # fmt: skip

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.shares_DX = nn.Parameter(torch.empty(outputs, LANES + 2).normal_(std=outputs**-0.5))
        self.scale_3 = nn.Parameter(torch.full((3,), 0.01))

    @staticmethod
    def cost(width: int, tokens: int) -> Cost:
        """Count the matrix of all shares, which is applied to every stream, before and after the layer."""
        own = Cost(width * (LANES + 2) + 3, 2 * LANES * width * (LANES + 2) * tokens)
        return HyperConnections.cost(width, tokens) + own

    def look(self, stream: Tensor) -> Tensor:
        """Read the streams with their shares of the moment."""
        lanes_BTLD = lanes(stream)
        read_BTL1 = self.read_L[:, None] + self.scale_3[0] * self._shares(lanes_BTLD)[..., :1]
        return (lanes_BTLD * read_BTL1.to(stream.dtype)).sum(dim=-2)

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Mix the streams, and write to each, with the shares of the moment."""
        lanes_BTLD = lanes(stream)
        shares_BTLX = self._shares(lanes_BTLD)
        write_BTL1 = self.write_L[:, None] + self.scale_3[1] * shares_BTLX[..., 1:2]
        mix_BTLL = self.mix_LL + self.scale_3[2] * shares_BTLX[..., 2:].transpose(-2, -1)
        mixed_BTLD = mix_BTLL.to(stream.dtype) @ lanes_BTLD
        return (mixed_BTLD + write_BTL1.to(stream.dtype) * y_BTH[..., None, :]).flatten(-2)

    def _shares(self, lanes_BTLD: Tensor) -> Tensor:
        """Return tanh(norm(h) W) of every stream."""
        normed_BTLD = F.rms_norm(lanes_BTLD.float(), lanes_BTLD.shape[-1:], eps=1e-6)
        return torch.tanh(normed_BTLD @ self.shares_DX)


def lanes(stream: Tensor) -> Tensor:
    """Return the streams on an axis of their own."""
    return torch.unflatten(stream, -1, (LANES, -1))

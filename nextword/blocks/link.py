"""What the layers of a decoder see of an encoder: its last layer, or a learned mixture of all; slot "link".

Transparent attention: Bapna et al. 2018, a row of the table [MAUSAM "Do Transformer Modifications Transfer
Across Implementations and Applications?"].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.cache import Memory
from nextword.blocks.cost import Cost, Load
from nextword.blocks.dropout import Dropout
from nextword.blocks.roles import Role, Roles


class Last(nn.Module):
    """Every layer of the decoder sees the output of the encoder. Also the default of other links.

    It is made from the numbers of layers of both.
    """

    def __init__(self, layers: int, readers: int, dropout: float = 0.0) -> None:
        super().__init__()

    def forward(self, outputs: Sequence[Tensor], lengths_B: Tensor) -> Memory | list[Memory]:
        """Return what each layer of the decoder sees: one for all, or one for each.

        ``outputs``: the input of the encoder's first layer and the output of every layer, the last one
        normed.
        """
        return Memory(outputs[-1], lengths_B)

    @classmethod
    def cost(cls, layers: int, readers: int, width: int, load: Load) -> Cost:
        """Count nothing."""
        return Cost()


class Transparent(Last):
    """Layer j of the decoder sees Σ s_ij u_i, s_j a learned softmax over all outputs u of the encoder."""

    roles: ClassVar[Roles] = {"shares_UL": Role.SCALE}

    def __init__(self, layers: int, readers: int, dropout: float = 0.0) -> None:
        super().__init__(layers, readers)
        points = layers + 1
        self.shares_UL = nn.Parameter(torch.empty(points, readers).normal_(std=points**-0.5))
        self.drop = Dropout(dropout)

    def forward(self, outputs: Sequence[Tensor], lengths_B: Tensor) -> Memory | list[Memory]:
        """Mix the outputs for every layer of the decoder."""
        shares_UL = self.drop(self.shares_UL).softmax(dim=0)
        stacked_UX = torch.stack([each.flatten() for each in outputs])
        mixed_LX = shares_UL.T.to(stacked_UX.dtype) @ stacked_UX
        return [Memory(each_X.view_as(outputs[0]), lengths_B) for each_X in mixed_LX]

    @classmethod
    def cost(cls, layers: int, readers: int, width: int, load: Load) -> Cost:
        """Count a number for each pair of layers, and the sums for every position of the source."""
        pairs = (layers + 1) * readers
        return Cost(pairs, pairs * load.tokens * width)

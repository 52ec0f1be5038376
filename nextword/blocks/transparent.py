"""A mixture of all layers: what transparent attention gives a decoder, within one stack (slot "stack").

After Bapna et al. 2018 (the row "Transparent attention" of the table [MAUSAM]), whose decoder sees a mixture
of the encoder's layers: `blocks.link`. In a language model the output layer sees it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.cache import Reading
from nextword.blocks.cost import Cost, Load
from nextword.blocks.positions import NoPosition
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.blocks.stack import Stack
from nextword.core.contracts import State


class TransparentStack(Stack):
    """The output is a learned mixture of the outputs of all layers, equal shares at first."""

    roles: ClassVar[Roles] = {"shares_U": Role.SCALE}

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape, position)
        points = shape.layers + 1
        self.shares_U = nn.Parameter(torch.zeros(points))

    def run(
        self, x_BTD: Tensor, states: Sequence[State], reading: Reading, skip: int = 0
    ) -> Iterator[tuple[Tensor, State]]:
        """Run all layers; the last stream is the mixture."""
        layers = self.applied()
        found = [self.begin(x_BTD)]
        for place, (layer, state) in enumerate(zip(layers, states, strict=True)):
            stream, state = layer(found[-1], state, reading)
            found.append(stream)
            if place + 1 == len(layers):
                shares = self.shares_U.softmax(dim=0).to(stream.dtype)
                stream = sum((share * each for share, each in zip(shares, found, strict=True)), stream * 0)
                stream = stream[:, skip:]
            yield stream, state

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the layers and a number for each."""
        return super().cost(shape, load) + Cost(shape.layers + 1)

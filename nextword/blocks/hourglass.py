"""Hourglass: the causal form of a funnel, for language models: the middle layers see a shorter sequence.

Nawrot et al. 2022, after Dai et al. 2020 (the row "Funnel Transformer" of the table [MAUSAM]). Of k places
one is made, the mean of a token and the k - 1 before it, so that nothing looks ahead. What the middle layers
make of it is added to the k tokens from that one on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from nextword.blocks.block import Layer
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.convolution import Tail, empty_tail, with_tail
from nextword.blocks.cost import Cost, Load
from nextword.blocks.funnel import FunnelSettings
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.blocks.stack import Stack, layer_cost, outer_cost
from nextword.core.contracts import State
from nextword.core.settings import Settings


class Shortened(NamedTuple):
    """The states of the first middle layer, and of what is around the middle.

    ``last_BD`` is what the middle gave last: it is added to tokens until the next place is complete.
    """

    inner: State
    tail: Tail
    last_BD: Tensor


class Hourglass(Stack):
    """The first and the last group of layers see every token, those between them every k-th place."""

    takes_lanes: ClassVar[bool] = False  # its stream is one vector a token
    options: ClassVar[type[Settings]] = FunnelSettings

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape, position)
        self.factor = shape.of(FunnelSettings).factor
        self.middle = middle_of(shape)
        self.context, self.width = shape.context, shape.width

    def start(self, batch: int, source: Memory | list[Memory] | None = None) -> tuple[State, ...]:
        """Return the states of all layers, and of what is around the middle."""
        states = list(super().start(batch, source))
        if self.middle:
            like = next(self.parameters())
            width = self.applied()[0].begin(like.new_zeros(1, 1, self.width)).shape[-1]
            tail, last_BD = empty_tail(like, batch, self.factor - 1, width), like.new_zeros(batch, width)
            states[self.middle.start] = Shortened(states[self.middle.start], tail, last_BD)
        return tuple(states)

    def branched(self, states: Sequence[State], counts_B: Tensor) -> tuple[State, ...]:
        """Let the outer layers share what the rows of a search have read; the middle keeps its windows."""
        pairs = enumerate(zip(self.applied(), states, strict=True))
        return tuple(
            state if place in self.middle else layer.branched(state, counts_B)
            for place, (layer, state) in pairs
        )

    def run(
        self, x_BTD: Tensor, states: Sequence[State], reading: Reading, skip: int = 0
    ) -> Iterator[tuple[Tensor, State]]:
        """Run the outer layers on all tokens, the middle ones on the places that are complete now."""
        layers = self.applied()
        stream = self.begin(x_BTD)
        for place in range(len(layers)):
            cut = skip if place + 1 == len(layers) else 0
            if place not in self.middle:
                stream, state = layers[place](stream, states[place], reading, cut)
                yield stream, state
            elif place == self.middle.start:
                own = [layers[at] for at in self.middle]
                added_BTD, after = self._short(stream, [states[at] for at in self.middle], own, reading)
                stream = stream + added_BTD
                for at, state in zip(self.middle, after, strict=True):
                    is_last = at + 1 == len(layers)
                    yield (stream[:, skip:] if is_last else stream), state

    def _short(
        self, stream: Tensor, states: list[State], layers: Sequence[Layer], reading: Reading
    ) -> tuple[Tensor, list[State]]:
        """Return what the middle layers add to each token, and their states."""
        (inner, tail, last_BD), k = states[0], self.factor
        joined_BXD, tail = with_tail(stream, tail, reading)
        before = [-(-b // k) for b in reading.before]
        ends = [-(-(b + n) // k) for b, n in zip(reading.before, reading.lengths, strict=True)]
        counts = [end - first for first, end in zip(before, ends, strict=True)]
        after = [inner, *states[1:]]
        made_BGD = stream[:, :0]
        if longest := max(counts):
            places = Reading(before, counts, longest, -(-self.context // k), stream.device, reading.in_place)
            made_BGD = self._pooled(joined_BXD, reading, before, longest)
            for at, layer in enumerate(layers):
                made_BGD, after[at] = layer(made_BGD, after[at], places)
        given_BXD = torch.cat([last_BD[:, None].to(stream.dtype), made_BGD], dim=1)
        first_B1 = torch.tensor([[b - k * n] for b, n in zip(reading.before, before, strict=True)])
        at_BT = torch.div(first_B1 + torch.arange(reading.T), k, rounding_mode="floor") + 1
        at_BT = at_BT.clamp(0, longest).to(stream.device)
        counts_B = torch.tensor(counts, device=stream.device)
        last_BD = given_BXD[torch.arange(len(counts), device=stream.device), counts_B]
        added_BTD = given_BXD.gather(1, at_BT[..., None].expand(-1, -1, stream.shape[-1]))
        return added_BTD, [Shortened(after[0], tail, last_BD), *after[1:]]

    def _pooled(self, joined_BXD: Tensor, reading: Reading, before: list[int], count: int) -> Tensor:
        """Return the means of the new places: token g k and the k - 1 before it, as far as there are any."""
        k, device = self.factor, joined_BXD.device
        number_BG = torch.tensor(before)[:, None] + torch.arange(count)
        first_BG = number_BG * k - torch.tensor(reading.before)[:, None]
        at_BGK = (first_BG[..., None] + torch.arange(k)).clamp(0, joined_BXD.shape[1] - 1).to(device)
        picked = joined_BXD.gather(1, at_BGK.flatten(1)[..., None].expand(-1, -1, joined_BXD.shape[-1]))
        sums_BGD = torch.unflatten(picked, 1, (count, k)).sum(dim=2)
        return sums_BGD / (number_BG * k + 1).clamp(max=k)[..., None].to(device, sums_BGD.dtype)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the layers, those of the middle at the shorter length."""
        middle = middle_of(shape)
        short = load.long(-(-load.length // shape.of(FunnelSettings).factor))
        found = [
            layer_cost(shape.at(index), short if index in middle else load) for index in range(shape.layers)
        ]
        return sum(found, Cost()) + outer_cost(shape)


def middle_of(shape: Shape) -> range:
    """Return the layers between the first and the last group; of two groups, the second."""
    settings = shape.of(FunnelSettings)
    group = settings.per_group(shape.layers)
    return range(group, shape.layers - group if settings.groups > 2 else shape.layers)

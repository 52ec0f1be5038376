"""Funnel Transformer: an encoder whose sequence becomes shorter from group to group of layers (slot "stack").

Dai et al. 2020, a row of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations and
Applications?"]. The first layer of every further group pools neighbouring positions by their mean. Not
causal: a language model uses `blocks.hourglass`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, cast

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from nextword.blocks.attention import Attention
from nextword.blocks.block import Block
from nextword.blocks.cache import Reading
from nextword.blocks.cost import Cost, Load
from nextword.blocks.shape import Shape
from nextword.blocks.stack import Stack, layer_cost, outer_cost
from nextword.core.catalog import find
from nextword.core.contracts import State
from nextword.core.errors import ConfigError
from nextword.core.settings import Settings


class FunnelSettings(Settings):
    """Shorter and shorter sequences (stack = funnel or hourglass)."""

    groups: int = Field(2, ge=1, le=64, description="groups of layers, equally large; each is shorter")
    factor: int = Field(2, ge=2, le=64, description="positions that become one")
    pool: Literal["query", "output"] = Field(
        "query", description="funnel: pool queries and stream alone (paper), or what attention gives (table)"
    )

    def per_group(self, layers: int) -> int:
        """Return the layers of a group."""
        if layers % self.groups:
            raise ConfigError(
                f"'model.funnel.groups' is {self.groups}, which does not divide 'model.layers' {layers}; "
                "change one of them"
            )
        return layers // self.groups


class Funnel(Stack):
    """Groups of layers, each on a shorter sequence than the one before."""

    takes_lanes: ClassVar[bool] = False  # its stream is one vector a token
    options: ClassVar[type[Settings]] = FunnelSettings

    def __init__(self, shape: Shape, position: Any) -> None:
        super().__init__(shape, position)
        self.settings = shape.of(FunnelSettings)
        self.group = self.settings.per_group(shape.layers)
        is_plain = all(
            isinstance(block, Block) and isinstance(block.mixer, Attention) for block in self.blocks
        )
        if shape.causal or not is_plain:
            raise ConfigError(
                "'model.stack' is 'funnel', which pools a whole text: only encoders with "
                "block 'serial' and mixer 'attention' have it; choose 'hourglass' for a language model"
            )

    def run(
        self, x_BTD: Tensor, states: Sequence[State], reading: Reading, skip: int = 0
    ) -> Iterator[tuple[Tensor, State]]:
        """Run all layers; the first of every further group pools."""
        layers = [cast(Block, block) for block in self.blocks]
        stream = self.begin(x_BTD)
        for place, (layer, state) in enumerate(zip(layers, states, strict=True)):
            if place and place % self.group == 0:
                stream, reading, state = self._pooled(layer, stream, reading, state)
            else:
                stream, state = layer(stream, state, reading)
            yield stream, state

    def lengths(self, lengths_B: Tensor) -> Tensor:
        """Return how many positions are left of rows of these lengths."""
        for _ in range(1, self.settings.groups):
            lengths_B = -(-lengths_B // self.settings.factor)
        return lengths_B

    def _pooled(
        self, layer: Block, stream: Tensor, reading: Reading, state: State
    ) -> tuple[Tensor, Reading, State]:
        """Run a layer that pools."""
        factor = self.settings.factor
        normed_BTD = layer.around_mixer.enter(stream)
        after = shorter(reading, factor)
        if self.settings.pool == "output":
            y_BTD, state = layer.mixer(normed_BTD, state, reading)
            stream = pooled(layer.around_mixer.leave(stream, y_BTD), reading, factor)
        else:
            y_BTD, state = _pooled_queries(layer.mixer, normed_BTD, state, reading, factor)
            stream = layer.around_mixer.leave(pooled(stream, reading, factor), y_BTD)
        y_BTD = layer.ffn(layer.around_ffn.enter(stream), after)
        return layer.around_ffn.leave(stream, y_BTD), after, state

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the layers at the length of their group; one that pools has both lengths."""
        settings = shape.of(FunnelSettings)
        group, found = settings.per_group(shape.layers), Cost()
        for index in range(shape.layers):
            own = shape.at(index)
            if index and index % group == 0:
                shorter_load = load.long(-(-load.length // settings.factor))
                found += _pooling_cost(own, load, shorter_load, settings.pool)
                load = shorter_load
            else:
                found += layer_cost(own, load)
        return found + outer_cost(shape)

    @classmethod
    def length_after(cls, shape: Shape, length: int) -> int:
        """Return the length of the output."""
        settings = shape.of(FunnelSettings)
        for _ in range(1, settings.groups):
            length = -(-length // settings.factor)
        return length


def _pooling_cost(shape: Shape, load: Load, after: Load, pool: str) -> Cost:
    place, ffn = find("norm_place", shape.norm_place), find("ffn", shape.ffn)
    around = place.cost(shape, load) + place.cost(shape, after)
    mixer: Cost = find("mixer", shape.mixer).cost(shape, load)
    if pool == "query":  # the queries and the output are short; their matrix makes keys and values, too
        inner = shape.heads * shape.head_size
        into = (inner + 2 * shape.kv_heads * shape.head_size) * shape.width
        short = after.tokens * (into + inner * shape.width + 2 * load.length * inner)
        mixer = Cost(mixer.weights, load.tokens * into + short)
    total: Cost = around + mixer + ffn.cost(shape, after)
    return total


def _pooled_queries(
    attention: Any, x_BTD: Tensor, state: State, reading: Reading, factor: int
) -> tuple[Tensor, State]:
    """Attend from pooled positions to all; a pooled position stands where its first one did."""
    short_BTD = pooled(x_BTD, reading, factor)
    B, T = short_BTD.shape[:2]
    places_BT = (factor * torch.arange(T, device=x_BTD.device)).expand(B, T)
    q_BNTK = attention.project(short_BTD, places_BT)[0]
    _, k_BNTK, v_BNTK = attention.project(x_BTD, reading.places)
    bias, seen = attention.position[0].bias(places_BT, reading.keys), reading.filled()
    if bias is not None and seen is not None:
        bias = bias.masked_fill(~seen, -torch.inf)
    mixed_BNTK = attention.weigh(q_BNTK, k_BNTK, v_BNTK, seen if bias is None else bias)
    return attention.leave(mixed_BNTK), state


def pooled(x_BTD: Tensor, reading: Reading, factor: int) -> Tensor:
    """Return the mean of every few neighbours, over those that are tokens."""
    missing = -x_BTD.shape[1] % factor
    real_BT1 = reading.real()[..., None].to(x_BTD.dtype)
    sums_BTD, counts_BT1 = (
        torch.unflatten(F.pad(each, (0, 0, 0, missing)), 1, (-1, factor)).sum(dim=2)
        for each in (x_BTD * real_BT1, real_BT1)
    )
    return sums_BTD / counts_BT1.clamp(min=1)


def shorter(reading: Reading, factor: int) -> Reading:
    """Return the bookkeeping of the pooled sequence."""
    lengths = [-(-length // factor) for length in reading.lengths]
    columns = -(-reading.T // factor)
    return Reading([0] * len(lengths), lengths, columns, columns, reading.device)

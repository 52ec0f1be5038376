"""Layers in order: which there are, how often each is applied, and what happens between them; slot "stack".

"Transformer Decoder" [MAUSAM]. The plain stack has L layers with weights of their own, each applied once. A
variant overrides one method: `make` (which layers there are), `applied` (layers that are shared or repeated)
or `before` (pooling: another resolution, with a `Reading` of its own). There is a state for every
*application*, so that a layer that is applied twice remembers twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from torch import Tensor, nn

from nextword.blocks.block import Chain, Layer, make_norm, norm_cost
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.cost import Cost, Load
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.contracts import State


class Stack(nn.Module):
    """L different layers, each applied once; also the default of other stacks.

    ``blocks`` holds every layer once, whatever the number of its applications.
    """

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        self.shape = shape
        self.blocks = nn.ModuleList(self.make(shape, position))
        place = find("norm_place", shape.norm_place)
        self.first_norm = make_norm(shape) if place.begins_with_norm else None
        self.norm = make_norm(shape, shape.final_norm) if place.ends_with_norm or shape.final_norm else None

    def make(self, shape: Shape, position: NoPosition) -> Iterator[nn.Module]:
        """Yield the layers with weights, each of the shape of its index."""
        for index in range(shape.layers):
            own = shape.at(index)
            yield block_of(own)(own, position)

    def applied(self) -> Sequence[Layer]:
        """Return the layers in the order in which they are applied; a layer may be repeated."""
        return cast(Sequence[Layer], self.blocks)

    def before(self, place: int, stream: Tensor, reading: Reading) -> tuple[Tensor, Reading]:
        """Return the stream and the `Reading` for the application at this place (from 0)."""
        return stream, reading

    def start(self, batch: int, source: Memory | list[Memory] | None = None) -> tuple[State, ...]:
        """Return the states before any token, one for every application, which may have its own source."""
        layers = self.applied()
        sources = source if isinstance(source, list) else [source] * len(layers)
        return tuple(layer.start(batch, own) for layer, own in zip(layers, sources, strict=True))

    def branched(self, states: Sequence[State], counts_B: Tensor) -> tuple[State, ...]:
        """Return the states of a search, in which rows share what they have read; ``counts_B``: tokens."""
        pairs = zip(self.applied(), states, strict=True)
        return tuple(layer.branched(state, counts_B) for layer, state in pairs)

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Return the stream before the first application."""
        return self.applied()[0].begin(x_BTD if self.first_norm is None else self.first_norm(x_BTD))

    def run(
        self, x_BTD: Tensor, states: Sequence[State], reading: Reading, skip: int = 0
    ) -> Iterator[tuple[Tensor, State]]:
        """Run all applications and yield stream and state; the last leaves out the first ``skip`` tokens."""
        layers = self.applied()
        stream = self.begin(x_BTD)
        for place, (layer, state) in enumerate(zip(layers, states, strict=True)):
            stream, reading = self.before(place, stream, reading)
            stream, state = layer(stream, state, reading, skip if place + 1 == len(layers) else 0)
            yield stream, state

    def finish(self, stream: Tensor) -> Tensor:
        """Return the features from the stream after the last application."""
        x_BTD = self.applied()[-1].end(stream)
        return x_BTD if self.norm is None else self.norm(x_BTD)

    def forward(
        self, x_BTD: Tensor, states: Sequence[State], reading: Reading, skip: int = 0
    ) -> tuple[Tensor, tuple[State, ...]]:
        """Return the features of all tokens but the first ``skip``, and the new states."""
        last, after = x_BTD, []
        for stream, state in self.run(x_BTD, states, reading, skip):
            last = stream
            after.append(state)
        return self.finish(last), tuple(after)

    def lengths(self, lengths_B: Tensor) -> Tensor:
        """Return how many positions are left of rows of these lengths: all, unless the stack pools."""
        return lengths_B

    @classmethod
    def length_after(cls, shape: Shape, length: int) -> int:
        """Return the length of the output for an input of this length."""
        return length

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count all layers, and the norms around them."""
        layers = [layer_cost(shape.at(index), load) for index in range(shape.layers)]
        return sum(layers, Cost()) + outer_cost(shape)


class SharedStack(Stack):
    """One layer with its norms, applied L times (Lan et al. 2020, "ALBERT")."""

    def make(self, shape: Shape, position: NoPosition) -> Iterator[nn.Module]:
        """Yield the one layer."""
        own = shape.at(0)
        yield block_of(own)(own, position)

    def applied(self) -> Sequence[Layer]:
        """Return it L times."""
        return [cast(Layer, self.blocks[0])] * self.shape.layers

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the weights of one layer, and the products of all."""
        return layer_cost(shape.at(0), load).applied(shape.layers) + outer_cost(shape)


def block_of(shape: Shape) -> Any:
    """Return the class of a layer: where the parts are in another order, a chain of them."""
    is_chain = shape.block == "serial" and shape.order != "AF"
    return Chain if is_chain else find("block", shape.block)


def layer_cost(shape: Shape, load: Load) -> Cost:
    """Count one layer of this shape."""
    cost: Cost = block_of(shape).cost(shape, load)
    return cost


def outer_cost(shape: Shape) -> Cost:
    """Count the norms before the first layer and after the last, where there are any."""
    place = find("norm_place", shape.norm_place)
    first = norm_cost(shape) if place.begins_with_norm else Cost()
    last = norm_cost(shape, shape.final_norm) if place.ends_with_norm or shape.final_norm else Cost()
    return first + last

"""Layers in order: which there are, how often each is applied, and what happens between them; slot "stack".

"Transformer Decoder" [MAUSAM]. The plain stack has L layers with weights of their own, each applied once. A
variant overrides one method: `make` (which layers there are), `applied` (layers that are shared or repeated)
or `before` (pooling: another resolution, with a `Reading` of its own). There is a state for every
*application*, so that a layer that is applied twice remembers twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from torch import Tensor, nn

from nextword.blocks.block import Layer, make_norm
from nextword.blocks.cache import Memory, Reading
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
        is_normed = find("norm_place", shape.norm_place).ends_with_norm
        self.norm = make_norm(shape) if is_normed else None

    def make(self, shape: Shape, position: NoPosition) -> Iterator[nn.Module]:
        """Yield the layers with weights, each of the shape of its index."""
        for index in range(shape.layers):
            own = shape.at(index)
            yield find("block", own.block)(own, position)

    def applied(self) -> Sequence[Layer]:
        """Return the layers in the order in which they are applied; a layer may be repeated."""
        return cast(Sequence[Layer], self.blocks)

    def before(self, place: int, stream: Tensor, reading: Reading) -> tuple[Tensor, Reading]:
        """Return the stream and the `Reading` for the application at this place (from 0)."""
        return stream, reading

    def start(self, batch: int, source: Memory | None = None) -> tuple[State, ...]:
        """Return the states before any token, one for every application."""
        return tuple(layer.start(batch, source) for layer in self.applied())

    def run(
        self, x_BTD: Tensor, states: Sequence[State], reading: Reading, skip: int = 0
    ) -> Iterator[tuple[Tensor, State]]:
        """Run all applications and yield stream and state; the last leaves out the first ``skip`` tokens."""
        layers = self.applied()
        stream = layers[0].begin(x_BTD)
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

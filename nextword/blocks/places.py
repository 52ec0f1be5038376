"""Other places for norms (slot "norm_place"), and attention beside the feed-forward part (slot "block")."""

from __future__ import annotations

from torch import Tensor, nn

from nextword.blocks.block import Layer, PreNorm, make_norm, norm_cost
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.cost import Cost, Load
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.contracts import State


class Sandwich(PreNorm):
    """x ← x + N₂(f(N₁(x))): what a part writes is normed, too (Ding et al. 2021, Gemma 2)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.after = make_norm(shape)

    def leave(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """Norm what the part gives, then join."""
        return super().leave(stream, self.after(y_BTD))

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count one norm more."""
        return super().cost(shape, load) + norm_cost(shape)


class Peri(Sandwich):
    """The sandwich, and normed embeddings: the stream is a sum of normed vectors (Kim et al. 2025)."""

    begins_with_norm = True


class OutputNorm(PreNorm):
    """x ← x + N(f(x)): only what a part writes is normed (OLMo 2)."""

    def enter(self, stream: Tensor) -> Tensor:
        """Return the stream as it is."""
        x_BTD: Tensor = self.join.look(stream)
        return x_BTD

    def leave(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """Norm what the part gives, then join."""
        return super().leave(stream, self.norm(y_BTD))


class DeepNorm(PreNorm):
    """x ← N(α x + f(x)), α = (2 L)^¼: a thousand layers learn (Wang et al. 2022).

    It belongs to ``init = "deepnorm"``, which makes the first weights of values, outputs and feed-forward
    parts smaller by β = (8 L)^-¼. A decoder that reads a source has (3 L)^¼ and (12 L)^-¼; its encoder 0.81 x
    and 0.87 / x, x = (N⁴ M)^(1/16) of both numbers of layers.
    """

    ends_with_norm = False
    norms_stream = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.alpha, self.beta = deep(shape)

    def enter(self, stream: Tensor) -> Tensor:
        """Return the stream as it is."""
        x_BTD: Tensor = self.join.look(stream)
        return x_BTD

    def leave(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """Join with a larger stream, then norm."""
        normed: Tensor = self.norm(super().leave(self.alpha * stream, y_BTD))
        return normed


class Parallel(Layer):
    """x ← x + A(N(x)) + F(N(x)): both parts see the same input (GPT-J, PaLM)."""

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        self.index = shape.index
        self.around_mixer = find("norm_place", shape.norm_place)(shape)
        self.mixer: nn.Module = find("mixer", shape.mixer)(shape, position)
        self.ffn: nn.Module = find("ffn", shape.ffn)(shape)

    def start(self, batch: int, source: Memory | None = None) -> State:
        """Return the state of the mixer before any token."""
        return self.mixer.start(batch, source)  # type: ignore[operator]

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Begin the stream as the join does."""
        stream: Tensor = self.around_mixer.join.begin(x_BTD)
        return stream

    def forward(self, stream: Tensor, state: State, reading: Reading, skip: int = 0) -> tuple[Tensor, State]:
        """Apply both parts to one input, and join their sum."""
        x_BTD = self.around_mixer.enter(stream)
        y_BTD, state = self.mixer(x_BTD, state, reading, skip)
        y_BTD = y_BTD + self.ffn(x_BTD[:, skip:], reading)
        return self.around_mixer.leave(stream[:, skip:], y_BTD), state

    def end(self, stream: Tensor) -> Tensor:
        """End the stream as the join does."""
        x_BTD: Tensor = self.around_mixer.join.end(stream)
        return x_BTD

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count both parts, and one norm and join."""
        parts = find("mixer", shape.mixer).cost(shape, load) + find("ffn", shape.ffn).cost(shape, load)
        total: Cost = parts + find("norm_place", shape.norm_place).cost(shape, load)
        return total


def deep(shape: Shape) -> tuple[float, float]:
    """Return α and β of DeepNorm."""
    if shape.source_width:
        return (3 * shape.layers) ** 0.25, (12 * shape.layers) ** -0.25
    if shape.readers:
        both = (shape.layers**4 * shape.readers) ** (1 / 16)
        return 0.81 * both, 0.87 / both
    return (2 * shape.layers) ** 0.25, (8 * shape.layers) ** -0.25

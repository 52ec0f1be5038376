"""Blocks in order: mix over positions, then each position by itself; norms before or after.

"Transformer Decoder" [MAUSAM]; "Interspersing of Attention and MLP layers", "LayerNorms", "Residual
connections" [MAUSAM "Transformers (2017) Made Many Changes at Once!"]. Pre-norm: Xiong et al. 2020.
"""

from __future__ import annotations

from torch import Tensor, nn

from nextword.blocks.cache import Reading
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.contracts import State


def make_norm(shape: Shape) -> nn.Module:
    """The norm that the shape names."""
    norm: nn.Module = find("norm", shape.norm)(shape.width, shape.bias, shape.norm_eps)
    return norm


class PreNorm(nn.Module):
    """x ← x + f(N(x)): the stream itself is never normed, so the stack ends with a norm of its own."""

    ends_with_norm = True

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm = make_norm(shape)
        self.join = find("join", shape.join)(shape)
        self.drop = nn.Dropout(shape.dropout) if shape.dropout else None

    def enter(self, stream: Tensor) -> Tensor:
        """What the part reads."""
        x_BTD: Tensor = self.norm(self.join.look(stream))
        return x_BTD

    def leave(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """The stream after the part."""
        joined: Tensor = self.join(stream, y_BTD if self.drop is None else self.drop(y_BTD))
        return joined


class PostNorm(PreNorm):
    """x ← N(x + f(x)): the Transformer of 2017, which needs a warm-up."""

    ends_with_norm = False

    def enter(self, stream: Tensor) -> Tensor:
        """The stream as it is."""
        x_BTD: Tensor = self.join.look(stream)
        return x_BTD

    def leave(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """Joined, then normed."""
        normed: Tensor = self.norm(super().leave(stream, y_BTD))
        return normed


class Block(nn.Module):
    """A mixer over positions, then a feed-forward part: the slot "block"."""

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        place = find("norm_place", shape.norm_place)
        self.around_mixer, self.around_ffn = place(shape), place(shape)
        self.mixer = find("mixer", shape.mixer)(shape, position)
        self.ffn = find("ffn", shape.ffn)(shape)

    def start(self, batch: int) -> State:
        """The state of the mixer before any word."""
        return self.mixer.start(batch)

    def forward(self, stream: Tensor, state: State, reading: Reading, skip: int = 0) -> tuple[Tensor, State]:
        """Both parts, each joined to the stream; of the first ``skip`` words only the state is wanted."""
        y_BTD, state = self.mixer(self.around_mixer.enter(stream), state, reading, skip)
        stream = self.around_mixer.leave(stream[:, skip:] if skip else stream, y_BTD)
        y_BTD = self.ffn(self.around_ffn.enter(stream))
        return self.around_ffn.leave(stream, y_BTD), state


class Stack(nn.Module):
    """L blocks; the state has a part for each time a block is applied."""

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        block = find("block", shape.block)
        self.blocks = nn.ModuleList(block(shape, position) for _ in range(shape.layers))
        is_normed = find("norm_place", shape.norm_place).ends_with_norm
        self.norm = make_norm(shape) if is_normed else None

    def start(self, batch: int) -> tuple[State, ...]:
        """Nothing read."""
        return tuple(block.start(batch) for block in self.blocks)  # type: ignore[operator]

    def forward(
        self, x_BTD: Tensor, states: tuple[State, ...], reading: Reading, skip: int = 0
    ) -> tuple[Tensor, tuple[State, ...]]:
        """All blocks in order; features of all words but the first ``skip``, and the new states."""
        after = []
        for layer, (block, state) in enumerate(zip(self.blocks, states, strict=True), start=1):
            x_BTD, state = block(x_BTD, state, reading, skip if layer == len(self.blocks) else 0)
            after.append(state)
        return x_BTD if self.norm is None else self.norm(x_BTD), tuple(after)

"""One layer of a Transformer: attention over positions, then a feed-forward part; norms before or after.

"Transformer Decoder" [MAUSAM]; "Interspersing of Attention and MLP layers", "LayerNorms", "Residual
connections" [MAUSAM "Transformers (2017) Made Many Changes at Once!"]. Pre-norm: Xiong et al. 2020.
"""

from __future__ import annotations

from torch import Tensor, nn

from nextword.blocks.cache import Memory, Reading
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.contracts import State


def make_norm(shape: Shape) -> nn.Module:
    """Return the norm that the shape names."""
    norm: nn.Module = find("norm", shape.norm)(shape.width, shape.bias, shape.norm_eps)
    return norm


class PreNorm(nn.Module):
    """x ← x + f(N(x)): the stream itself is never normed, so the stack ends with a norm of its own."""

    ends_with_norm = True

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm = make_norm(shape)
        self.join = find("join", shape.join)(shape.width, shape.width)
        self.drop = nn.Dropout(shape.dropout) if shape.dropout else None

    def enter(self, stream: Tensor) -> Tensor:
        """Return the input of the part."""
        x_BTD: Tensor = self.norm(self.join.look(stream))
        return x_BTD

    def leave(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """Return the stream after the part."""
        joined: Tensor = self.join(stream, y_BTD if self.drop is None else self.drop(y_BTD))
        return joined


class PostNorm(PreNorm):
    """x ← N(x + f(x)): the Transformer of 2017, which needs a warm-up."""

    ends_with_norm = False

    def enter(self, stream: Tensor) -> Tensor:
        """Return the stream as it is."""
        x_BTD: Tensor = self.join.look(stream)
        return x_BTD

    def leave(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """Join, then norm."""
        normed: Tensor = self.norm(super().leave(stream, y_BTD))
        return normed


class Layer(nn.Module):
    """A layer of a stack, which reads a stream and writes to it, with a state of its own.

    It is built from the shape of its layer, which knows the index, and the positions of the stack.
    """

    def start(self, batch: int, source: Memory | None = None) -> State:
        """Return the state before any token; ``source``: what cross-attention attends to."""
        raise NotImplementedError

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Return the stream that a stack begins with, if this layer is its first."""
        return x_BTD

    def forward(self, stream: Tensor, state: State, reading: Reading, skip: int = 0) -> tuple[Tensor, State]:
        """Return the stream after the layer, of all tokens but the first ``skip``, and the new state."""
        raise NotImplementedError

    def end(self, stream: Tensor) -> Tensor:
        """Return the output of a stack from its stream, if this layer is its last."""
        return stream


class Block(Layer):
    """A mixer over positions, then a feed-forward part: the slot "block"."""

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        self.index = shape.index
        place = find("norm_place", shape.norm_place)
        self.around_mixer, self.around_ffn = place(shape), place(shape)
        self.mixer = find("mixer", shape.mixer)(shape, position)
        self.ffn = find("ffn", shape.ffn)(shape)

    def start(self, batch: int, source: Memory | None = None) -> State:
        """Return the state of the mixer before any token."""
        return self.mixer.start(batch, source)

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Begin the stream as the join does."""
        stream: Tensor = self.around_mixer.join.begin(x_BTD)
        return stream

    def forward(self, stream: Tensor, state: State, reading: Reading, skip: int = 0) -> tuple[Tensor, State]:
        """Apply both parts, each joined to the stream; the first ``skip`` tokens only update the state."""
        y_BTD, state = self.mixer(self.around_mixer.enter(stream), state, reading, skip)
        stream = self.around_mixer.leave(stream[:, skip:] if skip else stream, y_BTD)
        y_BTD = self.ffn(self.around_ffn.enter(stream))
        return self.around_ffn.leave(stream, y_BTD), state

    def end(self, stream: Tensor) -> Tensor:
        """End the stream as the join does."""
        x_BTD: Tensor = self.around_ffn.join.end(stream)
        return x_BTD

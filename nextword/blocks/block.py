"""One layer of a Transformer: attention over positions, then a feed-forward part; norms before or after.

"Transformer Decoder" [MAUSAM]; "Interspersing of Attention and MLP layers", "LayerNorms", "Residual
connections" [MAUSAM "Transformers (2017) Made Many Changes at Once!"]. Pre-norm: Xiong et al. 2020.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from nextword.blocks.cache import Memory, Reading
from nextword.blocks.cost import Cost, Load, weights
from nextword.blocks.dropout import Dropout
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.contracts import State


def make_norm(shape: Shape, name: str = "") -> nn.Module:
    """Return the norm that the shape names, or another one."""
    norm: nn.Module = find("norm", name or shape.norm)(shape.width, shape.bias, shape.norm_eps)
    return norm


def norm_cost(shape: Shape, name: str = "") -> Cost:
    """Count what `make_norm` makes."""
    return weights(find("norm", name or shape.norm).weights(shape.width, shape.bias))


class PreNorm(nn.Module):
    """x ← x + f(N(x)): the stream itself is never normed, so the stack ends with a norm of its own."""

    begins_with_norm: ClassVar[bool] = False
    ends_with_norm = True
    norms_stream: ClassVar[bool] = False

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm = make_norm(shape)
        self.join = find("join", shape.join)(shape.width, shape.width)
        self.drop = Dropout(shape.dropout) if shape.dropout else None

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count norm and join."""
        join: Cost = find("join", shape.join).cost(shape.width, load.tokens)
        return norm_cost(shape) + join

    def enter(self, stream: Tensor) -> Tensor:
        """Return the input of the part."""
        x_BTD: Tensor = self.norm(self.join.look(stream))
        return x_BTD

    def leave(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """Return the stream after the part."""
        if self.drop is not None and self.training:
            y_BTD = self.drop(y_BTD)
        joined: Tensor = self.join(stream, y_BTD)
        return joined


class PostNorm(PreNorm):
    """x ← N(x + f(x)): the Transformer of 2017, which needs a warm-up."""

    ends_with_norm = False
    norms_stream = True

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

    def branched(self, state: State, counts_B: Tensor) -> State:
        """Return the state for a search, whose rows are taken again at every step, where that is faster."""
        return state

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Return the stream that a stack begins with, if this layer is its first."""
        return x_BTD

    def forward(self, stream: Tensor, state: State, reading: Reading, skip: int = 0) -> tuple[Tensor, State]:
        """Return the stream after the layer, of all tokens but the first ``skip``, and the new state."""
        raise NotImplementedError

    def end(self, stream: Tensor) -> Tensor:
        """Return the output of a stack from its stream, if this layer is its last."""
        return stream

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count weights and products of a layer of this shape."""
        raise NotImplementedError


class Block(Layer):
    """A mixer over positions, then a feed-forward part: the slot "block".

    Parts in another order are a `Chain`, which is slower by a little.
    """

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

    def branched(self, state: State, counts_B: Tensor) -> State:
        """Ask the mixer."""
        return branched_part(self.mixer, state, counts_B)

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Begin the stream as the join does."""
        stream: Tensor = self.around_mixer.join.begin(x_BTD)
        return stream

    def forward(self, stream: Tensor, state: State, reading: Reading, skip: int = 0) -> tuple[Tensor, State]:
        """Apply both parts, each joined to the stream; the first ``skip`` tokens only update the state."""
        y_BTD, state = self.mixer(self.around_mixer.enter(stream), state, reading, skip)
        stream = self.around_mixer.leave(stream[:, skip:] if skip else stream, y_BTD)
        y_BTD = self.ffn(self.around_ffn.enter(stream), reading)
        return self.around_ffn.leave(stream, y_BTD), state

    def end(self, stream: Tensor) -> Tensor:
        """End the stream as the join does."""
        x_BTD: Tensor = self.around_ffn.join.end(stream)
        return x_BTD

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the parts and what is around them."""
        return sum_parts(shape, load, "AF")


def branched_part(part: Any, state: State, counts_B: Tensor) -> State:
    """Return the state of a part for a search; most have one form only."""
    return part.branched(state, counts_B) if hasattr(part, "branched") else state


PARTS = {"A": "mixer", "X": "cross", "F": "ffn"}  # letters of a layer's order, and the slots they mean


def make_part(letter: str, shape: Shape, position: NoPosition) -> nn.Module:
    """Return the part that a letter of the order stands for."""
    slot = PARTS[letter]
    kind, shape = find(slot, getattr(shape, slot)), shape.for_part(slot)
    part: nn.Module = kind(shape) if slot == "ffn" else kind(shape, position)
    return part


def sum_parts(shape: Shape, load: Load, order: str) -> Cost:
    """Count parts in any order, each with what is around it, and the positions of each mixer."""
    place = find("norm_place", shape.norm_place)
    slots = [PARTS[letter] for letter in order]
    parts = [find(slot, getattr(shape, slot)).cost(shape.for_part(slot), load) for slot in slots]
    return sum([place.cost(shape, load) for _ in order], Cost()) + sum(parts, Cost())


class Chain(Layer):
    """Any parts in any order, as the shape says: AXF is the layer of a decoder [MAUSAM "Decoders"].

    A second part of a kind has a name with a number: mixer, mixer2. The state holds one of each part but
    feed-forward ones, which have none.
    """

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        self.index, self.order = shape.index, self.order_of(shape)
        place = find("norm_place", shape.norm_place)
        self.names = [_numbered(self.order, at) for at in range(len(self.order))]
        for name in self.names:
            self.add_module(f"around_{name}", place(shape))
        for name, letter in zip(self.names, self.order, strict=True):
            self.add_module(name, self.make(letter, shape, position))
        self.last = max((at for at, letter in enumerate(self.order) if letter == "A"), default=-1)

    @staticmethod
    def order_of(shape: Shape) -> str:
        """Return the letters of the parts."""
        return shape.order

    def make(self, letter: str, shape: Shape, position: NoPosition) -> nn.Module:
        """Return the part that a letter stands for."""
        return make_part(letter, shape, position)

    def start(self, batch: int, source: Memory | None = None) -> State:
        """Return the states of the parts before any token."""
        parts = zip(self.names, self.order, strict=True)
        return tuple(getattr(self, name).start(batch, source) for name, letter in parts if letter != "F")

    def branched(self, state: State, counts_B: Tensor) -> State:
        """Ask the parts."""
        named = zip(self.names, self.order, strict=True)
        parts = [getattr(self, name) for name, letter in named if letter != "F"]
        return tuple(branched_part(part, own, counts_B) for part, own in zip(parts, state, strict=True))

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Begin the stream as the join does."""
        stream: Tensor = self._around(0).join.begin(x_BTD)
        return stream

    def forward(self, stream: Tensor, state: State, reading: Reading, skip: int = 0) -> tuple[Tensor, State]:
        """Apply all parts, each joined to the stream; the last mixer is the last that sees skipped tokens."""
        stream = stream if self.last >= 0 else stream[:, skip:]
        before, after = iter(state), []
        for at, (name, letter) in enumerate(zip(self.names, self.order, strict=True)):
            around, part = self._around(at), getattr(self, name)
            x_BTD = around.enter(stream)
            if letter == "F":
                y_BTD = part(x_BTD, reading)
            else:
                cut = skip if at == self.last else 0
                y_BTD, own = part(x_BTD, next(before), reading, cut)
                after.append(own)
                stream = stream[:, cut:] if cut else stream
            stream = around.leave(stream, y_BTD)
        return stream, tuple(after)

    def end(self, stream: Tensor) -> Tensor:
        """End the stream as the join does."""
        x_BTD: Tensor = self._around(-1).join.end(stream)
        return x_BTD

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the parts and what is around them."""
        return sum_parts(shape, load, cls.order_of(shape))

    def _around(self, at: int) -> Any:
        return getattr(self, f"around_{self.names[at]}")


def _numbered(order: str, at: int) -> str:
    """Return the name of the part at a place of the order: the second mixer is mixer2."""
    count = order[: at + 1].count(order[at])
    return PARTS[order[at]] + (str(count) if count > 1 else "")

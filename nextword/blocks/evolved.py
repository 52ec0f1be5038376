"""The Evolved Transformer: layers that a search has found, with convolutions beside attention (slot "block").

So et al. 2019, a row of the table [MAUSAM "Do Transformer Modifications Transfer Across Implementations and
Applications?"]. Not causal, for an encoder: a gated linear unit, a branch of convolutions, attention,
feed-forward. Causal, for a decoder: wide attention (twice the heads) beside attention to the source, a branch
of convolutions, attention, attention to the source, feed-forward. Without a source, as in a language model,
the parts that look at it are left out. One such layer is about as large as two others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.block import Layer
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.convolution import Tail, around, depthwise, empty_tail, with_tail
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.norms import LayerNorm
from nextword.blocks.positions import NoPosition
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.contracts import State

WIDE, MIDDLE = (
    4,
    2,
)  # inner widths of the branches of convolutions, encoder and decoder, in widths of the stream
ENCODER = ("gated", "convolution", "mixer", "ffn")
DECODER = ("wide", "convolution", "mixer", "cross", "ffn")


class Separable(nn.Module):
    """A convolution of every channel by itself, then a matrix over the channels."""

    def __init__(self, inputs: int, outputs: int, width: int, causal: bool) -> None:
        super().__init__()
        self.causal, self.width, self.inputs = causal, width, inputs
        self.taps_CJ = nn.Parameter(torch.empty(inputs, width).normal_(std=width**-0.5))
        self.bias_C = nn.Parameter(torch.zeros(inputs))
        self.point = nn.Linear(inputs, outputs)

    roles: ClassVar[Roles] = {"taps_CJ": Role.POSITION, "bias_C": Role.BIAS}

    def start(self, batch: int) -> Tail:
        """Return an empty past."""
        return empty_tail(self.taps_CJ, batch, self.width - 1 if self.causal else 0, self.inputs)

    def forward(self, x_BTC: Tensor, tail: Tail, reading: Reading) -> tuple[Tensor, Tail]:
        """Convolve, then mix the channels."""
        if self.causal:
            joined_BXC, tail = with_tail(x_BTC, tail, reading)
        else:
            joined_BXC = around(x_BTC, self.width, reading)
        y_BTD: Tensor = self.point(depthwise(joined_BXC, self.taps_CJ.to(x_BTC.dtype)) + self.bias_C)
        return y_BTD, tail

    @staticmethod
    def cost(inputs: int, outputs: int, width: int, tokens: int) -> Cost:
        """Count both."""
        channels = Cost(inputs * (width + 1), inputs * width * tokens)
        return channels + linear(inputs, outputs, tokens, bias=True)


class GatedLinear(nn.Module):
    """y = (x W + b) ∘ σ(x V + c), from D to D."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.both = nn.Linear(shape.width, 2 * shape.width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Gate one half by the other."""
        return F.glu(self.both(x_BTD), dim=-1)

    @staticmethod
    def cost(shape: Shape, load: Load) -> Cost:
        """Count both matrices."""
        return linear(shape.width, 2 * shape.width, load.tokens, bias=True)


class EncoderBranch(nn.Module):
    """Sum of a wide ReLU layer and a narrow convolution over 3 places, normed; then one over 9 places.

    Narrow outputs are filled up with zeros on the right.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, self.wide = shape.width, WIDE * shape.width
        self.left = nn.Linear(width, self.wide, bias=False)
        self.right = nn.Linear(3 * width, width // 2, bias=False)  # of three places side by side
        self.norm = LayerNorm(self.wide, eps=1e-6)
        self.out = Separable(self.wide, width // 2, 9, causal=False)

    def start(self, batch: int) -> State:
        """Return nothing: the branch sees both sides at once."""
        return ()

    def forward(self, x_BTD: Tensor, state: State, reading: Reading) -> tuple[Tensor, State]:
        """Run both sides, and what follows their sum."""
        T, width = x_BTD.shape[1:]
        joined_BXD = around(x_BTD, 3, reading)
        three_BTX = torch.cat([joined_BXD[:, j : j + T] for j in range(3)], dim=-1)
        right_BTC = torch.relu(self.right(three_BTX))
        sum_BTC = torch.relu(self.left(x_BTD)) + F.pad(right_BTC, (0, self.wide - width // 2))
        y_BTC, _ = self.out(self.norm(sum_BTC), Tail(x_BTD[:, :0]), reading)
        return F.pad(y_BTC, (0, width - width // 2)), state

    @staticmethod
    def cost(shape: Shape, load: Load) -> Cost:
        """Count both sides, the norm, and the last convolution."""
        width, wide = shape.width, WIDE * shape.width
        sides = linear(width, wide, load.tokens) + linear(3 * width, width // 2, load.tokens)
        return sides + weights(2 * wide) + Separable.cost(wide, width // 2, 9, load.tokens)


class DecoderBranch(nn.Module):
    """Sum of convolutions over 11 (ReLU) and 7 places, normed; then one over 7 places; all causal."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, self.wide = shape.width, MIDDLE * shape.width
        self.left = Separable(width, self.wide, 11, causal=True)
        self.right = Separable(width, width // 2, 7, causal=True)
        self.norm = LayerNorm(self.wide, eps=1e-6)
        self.out = Separable(self.wide, width, 7, causal=True)

    def start(self, batch: int) -> State:
        """Return the empty pasts of three convolutions."""
        return self.left.start(batch), self.right.start(batch), self.out.start(batch)

    def forward(self, x_BTD: Tensor, state: State, reading: Reading) -> tuple[Tensor, State]:
        """Run both sides, and what follows their sum."""
        left_BTC, left = self.left(x_BTD, state[0], reading)
        right_BTC, right = self.right(x_BTD, state[1], reading)
        sum_BTC = torch.relu(left_BTC) + F.pad(right_BTC, (0, self.wide - right_BTC.shape[-1]))
        y_BTD, out = self.out(self.norm(sum_BTC), state[2], reading)
        return y_BTD, (left, right, out)

    @staticmethod
    def cost(shape: Shape, load: Load) -> Cost:
        """Count the convolutions and the norm."""
        width, wide = shape.width, MIDDLE * shape.width
        sides = Separable.cost(width, wide, 11, load.tokens) + Separable.cost(
            width, width // 2, 7, load.tokens
        )
        return sides + weights(2 * wide) + Separable.cost(wide, width, 7, load.tokens)


class Evolved(Layer):
    """The layer of the encoder, or, causal, of the decoder."""

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        self.index, self.causal = shape.index, shape.causal
        self.reads_source = "X" in shape.order
        self.names = _names(shape)
        place = find("norm_place", shape.norm_place)
        for name in self.names:
            self.add_module(f"around_{name}", place(shape))
        mixer, cross = find("mixer", shape.mixer), find("cross", shape.cross)
        self.convolution = (DecoderBranch if shape.causal else EncoderBranch)(shape)
        self.mixer = mixer(shape, position)
        self.ffn = find("ffn", shape.ffn)(shape)
        if shape.causal:
            self.wide = mixer(wide_shape(shape), position)
        else:
            self.gated = GatedLinear(shape)
        if self.reads_source:
            self.beside = cross(shape, position)
            self.cross = cross(shape, position)

    def start(self, batch: int, source: Memory | None = None) -> State:
        """Return the states of the parts that remember: attentions and convolutions."""
        own = (self.mixer.start(batch, source), self.convolution.start(batch))
        wide = (self.wide.start(batch, source),) if self.causal else ()
        looks = (self.beside, self.cross) if self.reads_source else ()
        return (*own, *wide, *(part.start(batch, source) for part in looks))

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Begin the stream as the join does."""
        stream: Tensor = self._around(self.names[0]).join.begin(x_BTD)
        return stream

    def forward(self, stream: Tensor, state: State, reading: Reading, skip: int = 0) -> tuple[Tensor, State]:
        """Apply all parts; the first ``skip`` tokens are left out at the end."""
        mixer, convolution, *others = state
        after = list(others)
        for name in self.names:
            x_BTD = self._around(name).enter(stream)
            if name == "gated":
                y_BTD = self.gated(x_BTD)
            elif name == "wide":
                y_BTD, after[0] = self.wide(x_BTD, others[0], reading)
                if self.reads_source:
                    beside_BTD, after[1] = self.beside(x_BTD, others[1], reading)
                    y_BTD = y_BTD + beside_BTD
            elif name == "convolution":
                y_BTD, convolution = self.convolution(x_BTD, convolution, reading)
            elif name == "mixer":
                y_BTD, mixer = self.mixer(x_BTD, mixer, reading)
            elif name == "cross":
                y_BTD, after[-1] = self.cross(x_BTD, others[-1], reading)
            else:
                y_BTD = self.ffn(x_BTD, reading)
            stream = self._around(name).leave(stream, y_BTD)
        return stream[:, skip:], (mixer, convolution, *after)

    def end(self, stream: Tensor) -> Tensor:
        """End the stream as the join does."""
        x_BTD: Tensor = self._around(self.names[-1]).join.end(stream)
        return x_BTD

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the parts and what is around them; positions of the wide heads are counted once."""
        mixer, cross = find("mixer", shape.mixer), find("cross", shape.cross)
        found = find("norm_place", shape.norm_place).cost(shape, load).times(len(_names(shape)))
        found += mixer.cost(shape, load) + find("ffn", shape.ffn).cost(shape, load)
        if shape.causal:
            found += mixer.cost(wide_shape(shape), load) + DecoderBranch.cost(shape, load)
            position = find("position", shape.position)
            found += position.heads_cost(wide_shape(shape)) if shape.index == 0 else Cost()
        else:
            found += GatedLinear.cost(shape, load) + EncoderBranch.cost(shape, load)
        total: Cost = found + (cross.cost(shape, load).times(2) if "X" in shape.order else Cost())
        return total

    def _around(self, name: str) -> Any:
        return getattr(self, f"around_{name}")


def wide_shape(shape: Shape) -> Shape:
    """Return the shape of the wide attention: twice the heads."""
    return replace(shape, heads=2 * shape.heads, kv_heads=2 * shape.kv_heads)


def _names(shape: Shape) -> list[str]:
    """Return the parts in their order."""
    names = DECODER if shape.causal else ENCODER
    return [name for name in names if name != "cross" or "X" in shape.order]

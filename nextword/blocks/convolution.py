"""Convolutions in the place of attention: a token sees a few others by fixed or by its own weights.

Lightweight and dynamic convolution (Wu et al. 2019), rows of the table [MAUSAM "Do Transformer Modifications
Transfer Across Implementations and Applications?"]. v = (x W₁) ∘ σ(x W₂); each channel of v is averaged over
k places with weights that sum to 1, equal for all channels of a head; then the output matrix. Causal: the
places are the token's own and those before it; else around it. What is remembered: the last k - 1 vectors v.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.cache import Memory, Reading
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.dropout import Dropout
from nextword.blocks.positions import NoPosition
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.core.settings import Settings


class ConvolutionSettings(Settings):
    """Convolutions in place of attention (lightconv, dynamicconv)."""

    widths: tuple[int, ...] = Field(
        (3, 7, 15, 31),
        description="places k that a layer sees, layer by layer; the last for all further ones",
    )
    heads: int = Field(
        0, ge=0, le=2**16, description="channels of a head share weights; 0: as many as attention"
    )
    pointwise: bool = Field(False, description="one more matrix after the convolution")
    bias: bool = Field(False, description="biases in all matrices")

    @field_validator("widths")
    @classmethod
    def _widths(cls, widths: tuple[int, ...]) -> tuple[int, ...]:
        if not widths or not all(1 <= width <= 4096 for width in widths):
            raise ValueError("it must be a list of whole numbers from 1 to 4096, as in [3, 7, 15]")
        return widths

    def width_at(self, index: int) -> int:
        """Return k of a layer, from 0."""
        return self.widths[min(index, len(self.widths) - 1)]

    def heads_of(self, shape: Shape) -> int:
        """Return the number of heads."""
        return self.heads or shape.heads


class Tail(NamedTuple):
    """The last vectors of each row, the newest last; zeros where there were none."""

    last_BSC: Tensor


def empty_tail(like: Tensor, batch: int, places: int, channels: int) -> Tail:
    """Return the vectors before any token."""
    return Tail(like.new_zeros(batch, places, channels))


def with_tail(x_BTC: Tensor, tail: Tail, reading: Reading) -> tuple[Tensor, Tail]:
    """Return the new vectors behind the last ones, and the last ones after each row's last token."""
    places = tail.last_BSC.shape[1]
    joined_BXC = torch.cat([tail.last_BSC.to(x_BTC.dtype), x_BTC], dim=1)
    if places == 0:
        return joined_BXC, tail
    if reading.is_full:
        return joined_BXC, Tail(joined_BXC[:, -places:])
    lengths_B = torch.tensor(reading.lengths, device=x_BTC.device)
    at_BS = lengths_B[:, None] + torch.arange(places, device=x_BTC.device)
    return joined_BXC, Tail(joined_BXC.gather(1, at_BS[..., None].expand(-1, -1, x_BTC.shape[2])))


def around(x_BTC: Tensor, width: int, reading: Reading) -> Tensor:
    """Return the vectors with zeros in front and behind, and in place of what is not a token."""
    if not reading.is_full:
        x_BTC = x_BTC * reading.real()[..., None]
    before = (width - 1) // 2
    return F.pad(x_BTC, (0, 0, before, width - 1 - before))


def depthwise(joined_BXC: Tensor, taps_CJ: Tensor) -> Tensor:
    """Return Σ_j taps[c, j] x[t + j, c]: every channel by itself."""
    return F.conv1d(joined_BXC.transpose(1, 2), taps_CJ[:, None], groups=len(taps_CJ)).transpose(1, 2)


class LightConvolution(nn.Module):
    """The weights of the places are learned, one set for each head."""

    roles: ClassVar[Roles] = {"out": Role.OUT, "taps_NJ": Role.POSITION, "bias_C": Role.BIAS}
    adds_positions: ClassVar[bool] = False
    weighs: ClassVar[bool] = False
    has_heads: ClassVar[bool] = False
    norms_queries: ClassVar[bool] = False
    bounded: ClassVar[bool] = True  # its state does not grow
    options: ClassVar[type[Settings]] = ConvolutionSettings

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        settings, width = shape.of(ConvolutionSettings), shape.width
        self.causal, self.width = shape.causal, settings.width_at(shape.index)
        self.heads, self.size = settings.heads_of(shape), width
        self.from_x = nn.Linear(width, 2 * width, settings.bias)
        self.bias_C = nn.Parameter(torch.zeros(width)) if settings.bias else None
        self.pointwise = nn.Linear(width, width, settings.bias) if settings.pointwise else None
        self.out = nn.Linear(width, width, settings.bias)
        self.drop = Dropout(shape.dropout) if shape.dropout else None
        self.make_taps(settings)

    def make_taps(self, settings: ConvolutionSettings) -> None:
        """Make what the weights of the places come from."""
        self.taps_NJ = nn.Parameter(torch.empty(self.heads, self.width).normal_(std=0.02))

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices and the convolution."""
        settings, width, tokens = shape.of(ConvolutionSettings), shape.width, load.tokens
        into = linear(width, 2 * width, tokens, settings.bias)
        out = linear(width, width, tokens, settings.bias)
        own = weights(width if settings.bias else 0) + (out if settings.pointwise else Cost())
        return into + own + out + cls.taps_cost(shape, load)

    @classmethod
    def taps_cost(cls, shape: Shape, load: Load) -> Cost:
        """Count what the weights of the places come from, and their use."""
        settings = shape.of(ConvolutionSettings)
        places = settings.width_at(shape.index)
        return Cost(settings.heads_of(shape) * places, load.tokens * shape.width * places)

    def start(self, batch: int, source: Memory | None = None) -> Tail:
        """Return an empty past."""
        return empty_tail(self.from_x.weight, batch, self.width - 1 if self.causal else 0, self.size)

    def forward(self, x_BTD: Tensor, state: Tail, reading: Reading, skip: int = 0) -> tuple[Tensor, Tail]:
        """Gate, average over places, and project; no output for the first ``skip`` tokens."""
        v_BTC = F.glu(self.from_x(x_BTD), dim=-1)
        if self.causal:
            joined_BXC, state = with_tail(v_BTC, state, reading)
        else:
            joined_BXC = around(v_BTC, self.width, reading)
        y_BTC = self.convolve(v_BTC, joined_BXC)[:, skip:]
        y_BTC = y_BTC if self.bias_C is None else y_BTC + self.bias_C
        y_BTC = y_BTC if self.pointwise is None else self.pointwise(y_BTC)
        y_BTD: Tensor = self.out(y_BTC)
        return y_BTD, state

    def convolve(self, v_BTC: Tensor, joined_BXC: Tensor) -> Tensor:
        """Average with the same weights at every token."""
        taps_NJ = self.dropped(self.taps_NJ.softmax(dim=-1))
        return depthwise(
            joined_BXC, taps_NJ.repeat_interleave(self.size // self.heads, dim=0).to(v_BTC.dtype)
        )

    def dropped(self, taps: Tensor) -> Tensor:
        """Drop some of the weights in training."""
        return taps if self.drop is None else self.drop(taps)


class DynamicConvolution(LightConvolution):
    """A token computes the weights of its places from its own v: softmax(v W), one set for each head."""

    roles: ClassVar[Roles] = {"out": Role.OUT, "bias_C": Role.BIAS}

    def make_taps(self, settings: ConvolutionSettings) -> None:
        """Make the matrix that computes the weights."""
        self.taps = nn.Linear(self.size, self.heads * self.width, settings.bias)

    @classmethod
    def taps_cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrix; the sum over places is element by element."""
        settings = shape.of(ConvolutionSettings)
        outputs = settings.heads_of(shape) * settings.width_at(shape.index)
        return linear(shape.width, outputs, load.tokens, settings.bias)

    def convolve(self, v_BTC: Tensor, joined_BXC: Tensor) -> Tensor:
        """Average with each token's own weights."""
        B, T = v_BTC.shape[:2]
        taps_BTNJ = self.taps(v_BTC).view(B, T, self.heads, self.width).float().softmax(dim=-1)
        taps_BTNJ = self.dropped(taps_BTNJ).to(v_BTC.dtype)
        seen_BTNCJ = torch.unflatten(joined_BXC.unfold(1, self.width, 1), 2, (self.heads, -1))
        return (seen_BTNCJ * taps_BTNJ[..., None, :]).sum(dim=-1).flatten(2)

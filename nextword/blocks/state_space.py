"""Mamba-2 and gated DeltaNet (slot "mixer"): matrices as linear attention has them, behind a short
convolution.

Queries, keys and values are averaged over the last few tokens by learned taps, then SiLU; a token sets its
own decay exp(-A Δ), Δ = softplus(x W + b). Mamba-2 (Dao & Gu 2024): S = e^(-AΔ) S + Δ k vᵀ, o = S q + d v,
then the norm of o ∘ SiLU(z). Gated DeltaNet (Yang et al. 2025, Qwen3-Next): what stood at a key is replaced,
S = e^g S + k u ᵀ, u = β (v - e^g Sᵀ k); then the norm of each head times SiLU(z).
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.autocast import exact
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.convolution import Tail, depthwise, empty_tail, with_tail
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.linear_mixers import CHUNK, Matrices, chunk
from nextword.blocks.positions import NoPosition
from nextword.blocks.recurrent_mixers import FixedState, refuse_both_sides
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.core.settings import Settings


class StateSpaceSettings(Settings):
    """State spaces (mixers mamba2 and delta)."""

    expand: int = Field(2, ge=1, le=64, description="mamba2: heads of values, as multiples of model.heads")
    state: int = Field(0, ge=0, le=2**12, description="mamba2: features of a key; 0: as many as of a head")
    taps: int = Field(4, ge=1, le=256, description="tokens that the short convolution sees")


class Held(NamedTuple):
    """S of each head, and the last inputs of the convolution."""

    matrices: Matrices
    tail: Tail


class Mamba2(FixedState):
    """A state space with one decay a head; queries and keys are common to all heads."""

    name: ClassVar[str] = "mamba2"
    options: ClassVar[type[Settings]] = StateSpaceSettings
    roles: ClassVar[Roles] = {
        "out": Role.OUT, "gain_X": Role.NORM, "rate_N": Role.SCALE, "skip_N": Role.SCALE,
        "step_N": Role.BIAS, "taps_CJ": Role.POSITION, "bias_C": Role.BIAS,
    }  # fmt: skip

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        refuse_both_sides(shape, self.name)
        self.heads, self.size, self.state, self.eps = *self.sizes(shape), shape.norm_eps
        inner, taps = self.heads * self.size, shape.of(StateSpaceSettings).taps
        self.widths = [inner, *self.convolved(shape), *self.rates(shape)]
        self.from_x = nn.Linear(shape.width, sum(self.widths), shape.biased_attention)
        channels = sum(self.convolved(shape))
        self.taps_CJ = nn.Parameter(torch.empty(channels, taps).uniform_(-(taps**-0.5), taps**-0.5))
        self.rate_N = nn.Parameter(torch.linspace(1.0, 16.0, self.heads).log())
        # Δ is between 0.001 and 0.1 at first, evenly on the scale of its logarithm.
        step_N = torch.empty(self.heads).uniform_(-6.9, -2.3).exp()
        self.step_N = nn.Parameter(step_N + torch.log(-torch.expm1(-step_N)))
        self.out = nn.Linear(inner, shape.width, shape.biased_attention)
        self.make(shape)

    bias_C: nn.Parameter | None

    def make(self, shape: Shape) -> None:
        """Make what this kind has beside the matrices."""
        self.bias_C = nn.Parameter(torch.zeros(len(self.taps_CJ)))
        self.skip_N = nn.Parameter(torch.ones(self.heads))
        self.gain_X = nn.Parameter(torch.ones(self.heads * self.size))

    @classmethod
    def sizes(cls, shape: Shape) -> tuple[int, int, int]:
        """Return heads of values, the features of one, and those of a key."""
        own = shape.of(StateSpaceSettings)
        return own.expand * shape.heads, shape.head_size, own.state or shape.head_size

    @classmethod
    def convolved(cls, shape: Shape) -> list[int]:
        """Return the widths of values, keys and queries."""
        heads, size, state = cls.sizes(shape)
        return [heads * size, state, state]

    @classmethod
    def rates(cls, shape: Shape) -> list[int]:
        """Return the widths of what sets the decay."""
        return [cls.sizes(shape)[0]]

    def start(self, batch: int, source: Memory | None = None) -> Held:
        """Return matrices of zeros and an empty past."""
        weight, (channels, taps) = self.out.weight, self.taps_CJ.shape
        none_BNKV = weight.new_zeros(batch, self.heads, self.state, self.size)
        return Held(Matrices(none_BNKV), empty_tail(weight, batch, taps - 1, channels))

    def forward(self, x_BTD: Tensor, state: Held, reading: Reading, skip: int = 0) -> tuple[Tensor, Held]:
        """Convolve, then read chunk by chunk; what is not a token changes no matrix."""
        gate_BTX, *mixed, rates_BTX = self.split(self.from_x(x_BTD).float())
        joined_BXC, tail = with_tail(torch.cat(mixed, dim=-1), state.tail, reading)
        y_BTC = depthwise(joined_BXC, self.taps_CJ)
        y_BTC = F.silu(y_BTC if self.bias_C is None else y_BTC + self.bias_C)
        v, k, q = torch.split(y_BTC, [part.shape[-1] for part in mixed], dim=-1)
        v_BNTV, k_BNTK, q_BNTK = (self.headed(each, size) for each, size in self.kinds(v, k, q))
        decay_BNT, share_BNT = self.decays(rates_BTX)
        if not reading.is_full:
            real_B1T = reading.real()[:, None]
            decay_BNT, share_BNT = decay_BNT.masked_fill(~real_B1T, 0.0), share_BNT * real_B1T
        made, sum_BNKV = [], state.matrices.sum_BNKV.float()
        with exact(x_BTD):
            for at in range(0, x_BTD.shape[1], CHUNK):
                parts = (q_BNTK, k_BNTK, v_BNTV, decay_BNT, share_BNT)
                q, k, v, decay, share = (part[:, :, at : at + CHUNK] for part in parts)
                y_BNTV, sum_BNKV = self.chunk(q, k, v, decay, share, sum_BNKV)
                made.append(y_BNTV)
        y_BNTV = self.finished(torch.cat(made, dim=2), v_BNTV)
        y_BTX = self.gated(y_BNTV.transpose(1, 2)[:, skip:], gate_BTX[:, skip:])
        y_BTD: Tensor = self.out(y_BTX.to(x_BTD.dtype))
        return y_BTD, Held(Matrices(sum_BNKV), tail)

    def split(self, projected_BTX: Tensor) -> list[Tensor]:
        """Return the gate, values, keys, queries, and what sets the decay."""
        *parts, last = torch.split(projected_BTX, [*self.widths[:4], sum(self.widths[4:])], dim=-1)
        return [*parts, last]

    def kinds(self, v: Tensor, k: Tensor, q: Tensor) -> list[tuple[Tensor, int]]:
        """Return values, keys and queries, each with the features of a head."""
        return [(v, self.size), (k, self.state), (q, self.state)]

    def headed(self, x_BTX: Tensor, size: int) -> Tensor:
        """Return ``x_BNTK``."""
        return torch.unflatten(x_BTX, -1, (-1, size)).transpose(1, 2)

    def decays(self, rates_BTX: Tensor) -> tuple[Tensor, Tensor]:
        """Return -A Δ and Δ."""
        step_BNT = F.softplus(rates_BTX + self.step_N).transpose(1, 2)
        return -self.rate_N.exp()[:, None] * step_BNT, step_BNT

    def chunk(
        self, q: Tensor, k: Tensor, v: Tensor, decay_BNT: Tensor, share_BNT: Tensor, sum_BNKV: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute o = S q for all tokens of a chunk, and S after it."""
        return chunk(q, k, v, decay_BNT, share_BNT, sum_BNKV)

    def finished(self, y_BNTV: Tensor, v_BNTV: Tensor) -> Tensor:
        """Add d times the values."""
        return y_BNTV + self.skip_N[:, None, None] * v_BNTV

    def gated(self, y_BTNV: Tensor, gate_BTX: Tensor) -> Tensor:
        """Gate, then norm all heads together."""
        y_BTX = y_BTNV.flatten(2) * F.silu(gate_BTX)
        return F.rms_norm(y_BTX, y_BTX.shape[-1:], self.gain_X, self.eps)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices, the convolution, and per chunk its pairs and its products with S."""
        (heads, size, state), bias = cls.sizes(shape), shape.biased_attention
        channels, taps = sum(cls.convolved(shape)), shape.of(StateSpaceSettings).taps
        inner = heads * size
        into = linear(shape.width, inner + channels + sum(cls.rates(shape)), load.tokens, bias)
        out = linear(inner, shape.width, load.tokens, bias)
        full, rest = divmod(load.length, CHUNK)
        pairs = load.rows * (full * CHUNK**2 + rest**2) * cls.pair_cost(heads, size, state)
        carried = cls.carries * inner * state * load.tokens
        own = Cost(channels * taps, channels * taps * load.tokens) + cls.own_cost(shape)
        return into + out + own + Cost(0, pairs + carried)

    carries: ClassVar[int] = 2  # products of a token with S: it is read, and written

    @classmethod
    def pair_cost(cls, heads: int, size: int, state: int) -> int:
        """Count the products of a pair of tokens: one score for all heads, and the values."""
        return state + heads * size

    @classmethod
    def own_cost(cls, shape: Shape) -> Cost:
        """Count decays, steps and shares of the heads, the norm, and the convolution's biases."""
        heads, size, _ = cls.sizes(shape)
        return weights(3 * heads + heads * size + sum(cls.convolved(shape)))


class GatedDelta(Mamba2):
    """The delta rule with a decay; keys and queries have length 1, each head its own.

    A chunk of tokens is one triangular system: (I + tril(β K Kᵀ ∘ Γ)) U = β (V - e^b K S), b the sum of g.
    """

    name = "delta"
    carries = 3

    def make(self, shape: Shape) -> None:
        """Make the norm of a head."""
        self.bias_C = None
        self.gain_X = nn.Parameter(torch.ones(self.size))

    @classmethod
    def sizes(cls, shape: Shape) -> tuple[int, int, int]:
        """Return as many heads of keys as of values, equally large."""
        return shape.heads, shape.head_size, shape.head_size

    @classmethod
    def convolved(cls, shape: Shape) -> list[int]:
        """Return the same width for values, keys and queries."""
        return [shape.heads * shape.head_size] * 3

    @classmethod
    def rates(cls, shape: Shape) -> list[int]:
        """Return the widths of g and β."""
        return [shape.heads, shape.heads]

    def kinds(self, v: Tensor, k: Tensor, q: Tensor) -> list[tuple[Tensor, int]]:
        """Return values, and keys and queries of length 1."""
        k, q = (unit(torch.unflatten(each, -1, (self.heads, -1))).flatten(2) for each in (k, q))
        return [(v, self.size), (k, self.size), (q * self.size**-0.5, self.size)]

    def decays(self, rates_BTX: Tensor) -> tuple[Tensor, Tensor]:
        """Return g, at most 0, and β, between 0 and 1."""
        g_BTN, beta_BTN = rates_BTX.chunk(2, dim=-1)
        return super().decays(g_BTN)[0], torch.sigmoid(beta_BTN).transpose(1, 2)

    def chunk(
        self, q: Tensor, k: Tensor, v: Tensor, decay_BNT: Tensor, share_BNT: Tensor, sum_BNKV: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Solve for what every token writes, then read as linear attention does."""
        since_BNT = decay_BNT.cumsum(dim=-1)
        gaps_BNTS = (since_BNT[..., None] - since_BNT[..., None, :]).tril().exp().tril()
        share_BNT1, keys_BNSK = share_BNT[..., None], k.transpose(-2, -1)
        mixed_BNTS = share_BNT1 * ((k @ keys_BNSK) * gaps_BNTS).tril(-1)
        old_BNTV = (k * since_BNT.exp()[..., None]) @ sum_BNKV
        new_BNTV = torch.linalg.solve_triangular(
            mixed_BNTS, share_BNT1 * (v - old_BNTV), upper=False, unitriangular=True
        )
        return chunk(q, k, new_BNTV, decay_BNT, torch.ones_like(decay_BNT), sum_BNKV)

    def finished(self, y_BNTV: Tensor, v_BNTV: Tensor) -> Tensor:
        """Leave it as it is."""
        return y_BNTV

    def gated(self, y_BTNV: Tensor, gate_BTX: Tensor) -> Tensor:
        """Norm each head, then gate."""
        y_BTNV = F.rms_norm(y_BTNV, (self.size,), self.gain_X, self.eps)
        return y_BTNV.flatten(2) * F.silu(gate_BTX)

    @classmethod
    def pair_cost(cls, heads: int, size: int, state: int) -> int:
        """Count the products of a pair: keys with keys, queries with keys, and the values."""
        return 3 * heads * size

    @classmethod
    def own_cost(cls, shape: Shape) -> Cost:
        """Count decays and steps of the heads, and the norm."""
        return weights(2 * shape.heads + shape.head_size)


def unit(x: Tensor) -> Tensor:
    """Return vectors of length 1."""
    return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + 1e-6)

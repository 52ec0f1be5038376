"""RWKV-7 "Goose" (slot "mixer"): the delta rule, in which every feature of a key has a decay of its own.

Peng et al. 2025. What stood at a key is replaced in part, and all else fades, feature by feature:
S(t) = Diag(w) S(t-1) - (a ∘ k̂) k̂ᵀ S(t-1) + k vᵀ, o = Sᵀ r, where k̂ is the direction that is forgotten and a
how quickly. Everything comes from the token mixed with the one before it ("token shift"); decays w, rates a,
the share of the first layer's values and the gate by two narrow matrices. w is at least exp(-e^-½) = 0.545.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.autocast import exact
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.convolution import empty_tail, with_tail
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.linear_mixers import Matrices
from nextword.blocks.low_rank import LowRank
from nextword.blocks.positions import NoPosition
from nextword.blocks.recurrent_mixers import FixedState, refuse_both_sides
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.blocks.state_space import Held
from nextword.core.settings import Settings

CHUNK = 32  # tokens that are computed together: 0.545^-32 = 3e8 is the most that anything is divided by
_LEAST = math.exp(-0.5)  # -log of the smallest decay
_MIXES = (0.2, 0.9, 0.7, 0.7, 0.9, 0.2)  # how fast the share of the token before falls over the features
_EPS = 64e-5


class RWKVSettings(Settings):
    """The mixer rwkv7."""

    rank: int = Field(
        0,
        ge=0,
        le=2**12,
        description="inner width of decays, rates and gates; 0: an eighth of hidden, from 8",
    )


class RWKV7(FixedState):
    """Time mixing of RWKV-7; ``r``: receptance, which asks as a query does."""

    options: ClassVar[type[Settings]] = RWKVSettings
    mixes_values: ClassVar[bool] = True  # of the first layer into those of others
    roles: ClassVar[Roles] = {
        "out": Role.OUT, "mix_6D": Role.SCALE, "forgets_X": Role.SCALE, "writes_X": Role.SCALE,
        "again_X": Role.SCALE, "gain_X": Role.NORM, "bias_X": Role.BIAS,
    }  # fmt: skip

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        refuse_both_sides(shape, "rwkv7")
        self.heads, self.size = shape.heads, shape.head_size
        inner, rank, bias = self.heads * self.size, rank_of(shape), shape.biased_attention
        places_D = torch.arange(shape.width) / shape.width
        self.mix_6D = nn.Parameter(torch.stack([1 - places_D**power for power in _MIXES]))
        self.to_r = nn.Linear(shape.width, inner, bias)
        self.to_k = nn.Linear(shape.width, inner, bias)
        self.to_v = nn.Linear(shape.width, inner, bias)
        # Features of a head forget at different speeds: over about 670 tokens to 6, w = exp(-e^-½ σ(b)).
        self.decay = LowRank(shape, rank, torch.linspace(-6.0, -1.0, self.size).repeat(self.heads))
        self.rate = LowRank(shape, rank, torch.zeros(inner))
        self.share = LowRank(shape, rank, torch.ones(inner)) if shape.index else None
        self.gate = LowRank(shape, rank)
        self.forgets_X = nn.Parameter(torch.full((inner,), 0.85))
        self.writes_X = nn.Parameter(torch.ones(inner))
        self.again_X = nn.Parameter(torch.zeros(inner))
        self.gain_X, self.bias_X = nn.Parameter(torch.ones(inner)), nn.Parameter(torch.zeros(inner))
        self.out = nn.Linear(inner, shape.width, bias)

    def start(self, batch: int, source: Memory | None = None) -> Held:
        """Return matrices of zeros and no token before."""
        weight = self.out.weight
        none_BNKV = weight.new_zeros(batch, self.heads, self.size, self.size)
        return Held(Matrices(none_BNKV), empty_tail(weight, batch, 1, self.mix_6D.shape[1]))

    def forward(self, x_BTD: Tensor, state: Held, reading: Reading, skip: int = 0) -> tuple[Tensor, Held]:
        """Mix with the tokens before, then read chunk by chunk; what is not a token changes no matrix."""
        joined_BXD, tail = with_tail(x_BTD, state.tail, reading)
        change_BTD = joined_BXD[:, :-1] - x_BTD
        r, w, k, v, a, g = torch.addcmul(x_BTD, change_BTD, self.mix_6D[:, None, None])
        r, k, v = self.to_r(r).float(), self.to_k(k).float(), self.values(v, reading)
        log_w = -_LEAST * torch.sigmoid(self.decay.up(torch.tanh(self.decay.down(w))).float())
        rate = torch.sigmoid(self.rate.up(self.rate.down(a)).float())
        gate = self.gate.up(torch.sigmoid(self.gate.down(g)))
        gone = F.normalize(self.headed(k * self.forgets_X), dim=-1).flatten(2)  # k̂
        k = k * (1 + (rate - 1) * self.writes_X)
        back = gone * rate
        if not reading.is_full:
            real_BT1 = reading.real()[..., None]
            log_w, k, back = log_w.masked_fill(~real_BT1, 0.0), k * real_BT1, back * real_BT1
        parts = [self.headed(each).transpose(1, 2) for each in (r, log_w, k, v, gone, back)]
        made, sum_BNKV = [], state.matrices.sum_BNKV.float()
        with exact(x_BTD):
            for at in range(0, x_BTD.shape[1], CHUNK):
                y_BNTV, sum_BNKV = chunk(sum_BNKV, *(part[:, :, at : at + CHUNK] for part in parts))
                made.append(y_BNTV)
        y_BTX = F.layer_norm(torch.cat(made, dim=2).transpose(1, 2), (self.size,), eps=_EPS).flatten(2)
        again_BTN1 = self.headed(r * k * self.again_X).sum(dim=-1, keepdim=True)
        y_BTX = y_BTX * self.gain_X + self.bias_X + (again_BTN1 * self.headed(v)).flatten(2)
        y_BTD: Tensor = self.out((y_BTX * gate)[:, skip:].to(x_BTD.dtype))
        return y_BTD, Held(Matrices(sum_BNKV), tail)

    def values(self, x_BTD: Tensor, reading: Reading) -> Tensor:
        """Return values; those of the first layer come back in all later ones."""
        v_BTX = self.to_v(x_BTD).float()
        first_BTX = reading.shared.setdefault("first values of rwkv7", v_BTX)
        if self.share is None:
            return v_BTX
        share_BTX = torch.sigmoid(self.share.up(self.share.down(x_BTD)).float())
        return v_BTX + (first_BTX - v_BTX) * share_BTX

    def headed(self, x_BTX: Tensor) -> Tensor:
        """Return ``x_BTNK``."""
        return torch.unflatten(x_BTX, -1, (self.heads, self.size))

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices, and per chunk its pairs and its products with S."""
        inner, rank, bias = shape.heads * shape.head_size, rank_of(shape), shape.biased_attention
        into = linear(shape.width, 3 * inner, load.tokens, bias)
        narrow = [LowRank.cost(shape, load, rank) for _ in range(3 if shape.index else 2)]
        gate = LowRank.cost(shape, load, rank, bias=False)
        out = linear(inner, shape.width, load.tokens, bias)
        full, rest = divmod(load.length, CHUNK)
        pairs = 7 * inner * load.rows * (full * CHUNK**2 + rest**2)  # 4 scores, and what they mix
        carried = 4 * inner * shape.head_size * load.tokens
        own = weights(6 * shape.width + 5 * inner)
        return sum(narrow, into + gate + out + own + Cost(0, pairs + carried))


def rank_of(shape: Shape) -> int:
    """Return the inner width of the narrow matrices."""
    return shape.of(RWKVSettings).rank or max(8, shape.width // 8)


def chunk(
    sum_BNKV: Tensor, r: Tensor, log_w: Tensor, k: Tensor, v: Tensor, gone: Tensor, back: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute o = Sᵀ r for all tokens of a chunk, and S after it; all but S are (B, N, T, K).

    With P(t) = w(1) ∘ … ∘ w(t) and S = Diag(P) Z, Z(t) = Z(t-1) + (k / P) vᵀ - (a ∘ k̂ / P) u(t)ᵀ, where
    u(t) = Z(t-1)ᵀ (P(t-1) ∘ k̂) is what is forgotten: a triangular system for all u of the chunk.
    """
    since_BNTK = log_w.cumsum(dim=2)
    r, gone = r * since_BNTK.exp(), gone * (since_BNTK - log_w).exp()
    k, back = k * (-since_BNTK).exp(), back * (-since_BNTK).exp()
    u_BNTV = torch.linalg.solve_triangular(
        (gone @ back.transpose(-2, -1)).tril(-1),
        gone @ sum_BNKV + (gone @ k.transpose(-2, -1)).tril(-1) @ v,
        upper=False,
        unitriangular=True,
    )
    written = (r @ k.transpose(-2, -1)).tril() @ v - (r @ back.transpose(-2, -1)).tril() @ u_BNTV
    after_BNKV = sum_BNKV + k.transpose(-2, -1) @ v - back.transpose(-2, -1) @ u_BNTV
    return r @ sum_BNKV + written, after_BNKV * since_BNTK[:, :, -1, :, None].exp()

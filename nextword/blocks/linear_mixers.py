"""Linear attention and its kin: a matrix S for each head in the place of all keys and values (slot "mixer").

S = a S + k vᵀ, o = S q: what was read is one matrix, however long it was. Chunks of a row are computed as
attention is, and S carries from chunk to chunk; token by token it is the recurrence itself. RetNet (Sun et
al. 2023), linear attention (Katharopoulos et al. 2020); with a decay for each feature: `blocks.gated_linear`;
Mamba-2 and gated DeltaNet: `blocks.state_space`.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.autocast import exact
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.positions import NoPosition
from nextword.blocks.recurrent_mixers import FixedState, refuse_both_sides
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape

CHUNK = 64  # tokens that are computed as attention is


class Matrices(NamedTuple):
    """S of each head."""

    sum_BNKV: Tensor


class LinearMixer(FixedState):
    """What they share: queries, keys, values, a decay for each head and token, a norm, a gate."""

    roles: ClassVar[Roles] = {"out": Role.OUT, "gain_V": Role.NORM}
    name: ClassVar[str] = "retnet"
    gated: ClassVar[bool] = True  # the output is gated by SiLU of the input
    together: ClassVar[int] = CHUNK  # tokens of a chunk

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        refuse_both_sides(shape, self.name)
        self.heads, self.size = shape.heads, shape.head_size
        inner = self.heads * self.size
        own = position.of_layer(shape)
        self.position = (own,)
        self.from_x = nn.Linear(shape.width, 3 * inner, shape.biased_attention)
        self.gate = nn.Linear(shape.width, inner, shape.biased_attention) if self.gated else None
        self.gain_V = nn.Parameter(torch.ones(self.size))
        self.out = nn.Linear(inner, shape.width, shape.biased_attention)
        self.make_decay(shape)

    def make_decay(self, shape: Shape) -> None:
        """Make what the decay comes from."""

    def start(self, batch: int, source: Memory | None = None) -> Matrices:
        """Return matrices of zeros."""
        return Matrices(self.out.weight.new_zeros(batch, self.heads, self.size, self.size))

    def forward(
        self, x_BTD: Tensor, state: Matrices, reading: Reading, skip: int = 0
    ) -> tuple[Tensor, Matrices]:
        """Read chunk by chunk; what is not a token changes no matrix."""
        qkv_BTXK = torch.unflatten(self.from_x(x_BTD).float(), -1, (3, self.heads, self.size))
        q_BTNK, k_BTNK, v_BTNK = qkv_BTXK.unbind(dim=2)
        q_BTNK, k_BTNK = self.prepared(q_BTNK, k_BTNK, reading)
        decay_BTN, share_BTN = self.decays(x_BTD)
        if not reading.is_full:
            real_BT1 = reading.real()[..., None]
            decay_BTN = decay_BTN.masked_fill(~real_BT1, 0.0)
            share_BTN = share_BTN * real_BT1
        parts = [each.transpose(1, 2) for each in (q_BTNK, k_BTNK, v_BTNK)]
        rates = [each.transpose(1, 2) for each in (decay_BTN, share_BTN)]
        made, sum_BNKV = [], state.sum_BNKV.float()
        with exact(x_BTD):
            for at in range(0, x_BTD.shape[1], self.together):
                q, k, v, decay, share = (each[:, :, at : at + self.together] for each in (*parts, *rates))
                y_BNTV, sum_BNKV = self.chunk(q, k, v, decay, share, sum_BNKV)
                made.append(y_BNTV)
        y_BTNV = torch.cat(made, dim=2).transpose(1, 2)[:, skip:]
        y_BTNV = F.rms_norm(y_BTNV, (self.size,), self.gain_V, 1e-6)
        y_BTX = y_BTNV.flatten(2)
        if self.gate is not None:
            y_BTX = y_BTX * F.silu(self.gate(x_BTD[:, skip:]))
        y_BTD: Tensor = self.out(y_BTX.to(x_BTD.dtype))
        return y_BTD, Matrices(sum_BNKV)

    def prepared(self, q_BTNK: Tensor, k_BTNK: Tensor, reading: Reading) -> tuple[Tensor, Tensor]:
        """Return queries and keys as they are multiplied: turned by their places, and scaled."""
        turn, places = self.position[0].turn, reading.places
        return turn(q_BTNK, places) * self.size**-0.5, turn(k_BTNK, places)

    def decays(self, x_BTD: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logarithm of each token's decay, and how much of it is written."""
        raise NotImplementedError

    def chunk(
        self, q: Tensor, k: Tensor, v: Tensor, decay_BNT: Tensor, share_BNT: Tensor, sum_BNKV: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute o = q S for all tokens of a chunk, and S after it."""
        return chunk(q, k, v, decay_BNT, share_BNT, sum_BNKV)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices, and per chunk its pairs and its products with S."""
        inner, bias = shape.heads * shape.head_size, shape.biased_attention
        into = linear(shape.width, (4 if cls.gated else 3) * inner, load.tokens, bias)
        out = linear(inner, shape.width, load.tokens, bias)
        full, rest = divmod(load.length, cls.together)
        pairs = 2 * inner * load.rows * (full * cls.together**2 + rest**2)
        carried = 2 * inner * shape.head_size * load.tokens
        own = cls.decay_cost(shape, load) + weights(shape.head_size)
        return into + out + own + Cost(0, pairs + carried)

    @classmethod
    def decay_cost(cls, shape: Shape, load: Load) -> Cost:
        """Count what the decay comes from."""
        return Cost()


class RetNet(LinearMixer):
    """The decay of a head is fixed: γ = 1 - 2^(-5-h)."""

    log_gamma_N: Tensor

    def make_decay(self, shape: Shape) -> None:
        """Make log γ of the heads."""
        gamma_N = 1 - 2.0 ** (-5 - torch.arange(self.heads, dtype=torch.float64))
        self.register_buffer("log_gamma_N", gamma_N.log().float(), persistent=False)

    def decays(self, x_BTD: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same at every token."""
        decay = self.log_gamma_N.expand(*x_BTD.shape[:2], self.heads)
        return decay, torch.ones_like(decay)


class LinearAttention(LinearMixer):
    """No decay; queries and keys are made positive: elu + 1 (Katharopoulos et al. 2020)."""

    name = "linear"
    gated = False

    def prepared(self, q_BTNK: Tensor, k_BTNK: Tensor, reading: Reading) -> tuple[Tensor, Tensor]:
        """Make both positive."""
        return (F.elu(q_BTNK) + 1) * self.size**-0.5, F.elu(k_BTNK) + 1

    def decays(self, x_BTD: Tensor) -> tuple[Tensor, Tensor]:
        """Forget nothing."""
        none = x_BTD.new_zeros(*x_BTD.shape[:2], self.heads, dtype=torch.float32)
        return none, torch.ones_like(none)


def chunk(
    q: Tensor, k: Tensor, v: Tensor, decay_BNT: Tensor, share_BNT: Tensor, sum_BNKV: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute o = q S for all tokens of a chunk, and S after it; queries and keys may serve all heads."""
    v = v * share_BNT[..., None]
    since_BNT = decay_BNT.cumsum(dim=-1)
    gaps_BNTS = (since_BNT[..., None] - since_BNT[..., None, :]).tril().exp().tril()
    inside = ((q @ k.transpose(-2, -1)) * gaps_BNTS) @ v
    before = (q * since_BNT.exp()[..., None]) @ sum_BNKV
    left_BNT = (since_BNT[..., -1:] - since_BNT).exp()
    sum_BNKV = sum_BNKV * since_BNT[..., -1, None, None].exp()
    return inside + before, sum_BNKV + (k * left_BNT[..., None]).transpose(-2, -1) @ v

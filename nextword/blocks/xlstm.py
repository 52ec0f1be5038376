"""xLSTM: LSTMs with exponential gates, of matrices (mLSTM) and of numbers (sLSTM); slot "mixer".

Beck et al. 2024. mLSTM: C = f C + i k vᵀ, n = f n + i k, h = Cᵀ q / max(|nᵀ q|, 1), i = exp(ĩ), f = σ(f̃):
gates from the input alone, so that chunks are computed as attention is. sLSTM: c = f c + i z, n = f n + i,
h = o c / n, with gates that also see the last h of their head: one token after another. C, n and c are held
divided by exp(m), m the largest exponent so far, so that nothing overflows. As in xLSTM 7B the gates of an
mLSTM are bounded by 15, a head's output is normed, and a sigmoid of the input lets it out.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.autocast import exact
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.linear_mixers import CHUNK
from nextword.blocks.positions import NoPosition
from nextword.blocks.recurrent_mixers import FixedState, refuse_both_sides
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape

CAP = 15.0  # of the gates before they are exponents
SMALL = 1e-6


class Remembered(NamedTuple):
    """[C, n] of each head, divided by exp(m), and m."""

    sum_BNKX: Tensor
    most_BN: Tensor


class MLSTM(FixedState):
    """An LSTM whose cell is a matrix for each head, without a state in its gates."""

    roles: ClassVar[Roles] = {"out": Role.OUT, "gates": Role.GATE, "gain_X": Role.NORM}

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        refuse_both_sides(shape, "mlstm")
        self.heads, self.size = shape.heads, shape.head_size
        inner = self.heads * self.size
        self.from_x = nn.Linear(shape.width, 4 * inner, shape.biased_attention)
        self.gates = nn.Linear(shape.width, 2 * self.heads)
        nn.init.normal_(self.gates.weight, std=0.02)
        with torch.no_grad():  # little is written at first, and heads forget at different rates
            self.gates.bias[: self.heads] = -5.0
            self.gates.bias[self.heads :] = torch.linspace(3.0, 6.0, self.heads)
        self.gain_X = nn.Parameter(torch.ones(inner))
        self.out = nn.Linear(inner, shape.width, shape.biased_attention)

    def start(self, batch: int, source: Memory | None = None) -> Remembered:
        """Return zeros."""
        weight = self.out.weight
        none_BNKX = weight.new_zeros(batch, self.heads, self.size, self.size + 1)
        return Remembered(none_BNKX, weight.new_zeros(batch, self.heads))

    def forward(
        self, x_BTD: Tensor, state: Remembered, reading: Reading, skip: int = 0
    ) -> tuple[Tensor, Remembered]:
        """Read chunk by chunk; what is not a token writes nothing and forgets nothing."""
        q, k, v, out_BTX = self.from_x(x_BTD).float().chunk(4, dim=-1)
        q, k, v = (torch.unflatten(each, -1, (self.heads, -1)).transpose(1, 2) for each in (q, k, v))
        gates_BTX = CAP * torch.tanh(self.gates(x_BTD).float() / CAP)
        write_BNT, keep_BNT = gates_BTX.transpose(1, 2).chunk(2, dim=1)
        keep_BNT = F.logsigmoid(keep_BNT)
        if not reading.is_full:
            other_B1T = ~reading.real()[:, None]
            write_BNT = write_BNT.masked_fill(other_B1T, -torch.inf)
            keep_BNT = keep_BNT.masked_fill(other_B1T, 0.0)
        made = []
        with exact(x_BTD):
            for at in range(0, x_BTD.shape[1], CHUNK):
                part = slice(at, at + CHUNK)
                own = (q[:, :, part], k[:, :, part], v[:, :, part], write_BNT[:, :, part])
                y_BNTV, state = chunk(*own, keep_BNT[:, :, part], state)
                made.append(y_BNTV)
        y_BTNV = torch.cat(made, dim=2).transpose(1, 2)[:, skip:]
        y_BTX = F.layer_norm(y_BTNV, (self.size,), eps=SMALL).flatten(2) * self.gain_X
        y_BTD: Tensor = self.out((torch.sigmoid(out_BTX[:, skip:]) * y_BTX).to(x_BTD.dtype))
        return y_BTD, state

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices, and per chunk its pairs and its products with C and n."""
        inner, bias, wide = shape.heads * shape.head_size, shape.biased_attention, shape.head_size + 1
        own = linear(shape.width, 4 * inner, load.tokens, bias)
        own += linear(inner, shape.width, load.tokens, bias)
        gates = linear(shape.width, 2 * shape.heads, load.tokens, bias=True) + weights(inner)
        full, rest = divmod(load.length, CHUNK)
        pairs = load.rows * (full * CHUNK**2 + rest**2) * shape.heads * (shape.head_size + wide)
        return own + gates + Cost(0, pairs + 2 * load.tokens * inner * wide)


def chunk(
    q: Tensor, k: Tensor, v: Tensor, write_BNT: Tensor, keep_BNT: Tensor, state: Remembered
) -> tuple[Tensor, Remembered]:
    """Compute h for all tokens of a chunk, and the memory after it; gates are logarithms."""
    before_BNKX, most_BN = state.sum_BNKX.float(), state.most_BN.float()
    since_BNT = keep_BNT.cumsum(dim=-1)
    T = since_BNT.shape[-1]
    ahead_TS = torch.ones(T, T, dtype=torch.bool, device=q.device).triu(1)
    gaps_BNTS = since_BNT[..., None] - since_BNT[..., None, :] + write_BNT[..., None, :]
    gaps_BNTS = gaps_BNTS.masked_fill(ahead_TS, -torch.inf)
    carried_BNT = since_BNT + most_BN[..., None]
    most_BNT = torch.maximum(gaps_BNTS.amax(dim=-1), carried_BNT).detach()  # it cancels
    values_BNTX = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
    q = q * q.shape[-1] ** -0.5
    inside = ((q @ k.transpose(-2, -1)) * (gaps_BNTS - most_BNT[..., None]).exp()) @ values_BNTX
    sum_BNTX = inside + (q * (carried_BNT - most_BNT).exp()[..., None]) @ before_BNKX
    least_BNT1 = torch.exp(-most_BNT)[..., None]
    y_BNTV = sum_BNTX[..., :-1] / (torch.maximum(sum_BNTX[..., -1:].abs(), least_BNT1) + SMALL)
    last_BN = most_BNT[..., -1]
    left_BNT = (gaps_BNTS[..., -1, :] - last_BN[..., None]).exp()
    kept_BN11 = (carried_BNT[..., -1] - last_BN).exp()[..., None, None]
    after_BNKX = before_BNKX * kept_BN11 + (k * left_BNT[..., None]).transpose(-2, -1) @ values_BNTX
    return y_BNTV, Remembered(after_BNKX, last_BN)


class Cells(NamedTuple):
    """c and n divided by exp(m), m, and the last output."""

    c_BNK: Tensor
    n_BNK: Tensor
    most_BNK: Tensor
    h_BNK: Tensor


class SLSTM(FixedState):
    """An LSTM with exponential gates, whose heads see their own last output."""

    roles: ClassVar[Roles] = {"out": Role.OUT, "again_NKX": Role.RECURRENT, "gain_X": Role.NORM}

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        refuse_both_sides(shape, "slstm")
        self.heads, self.size = shape.heads, shape.head_size
        inner = self.heads * self.size
        self.from_x = nn.Linear(shape.width, 4 * inner)
        again_NKX = torch.empty(self.heads, self.size, 4 * self.size)
        self.again_NKX = nn.Parameter(again_NKX.normal_(std=self.size**-0.5))
        self.gain_X = nn.Parameter(torch.ones(inner))
        self.out = nn.Linear(inner, shape.width, shape.bias)

    def start(self, batch: int, source: Memory | None = None) -> Cells:
        """Return zeros."""
        none_BNK = self.out.weight.new_zeros(batch, self.heads, self.size)
        return Cells(none_BNK, none_BNK, none_BNK, none_BNK)

    def forward(self, x_BTD: Tensor, state: Cells, reading: Reading, skip: int = 0) -> tuple[Tensor, Cells]:
        """Read one token after another: each needs the output of the last."""
        gates_BTNX = torch.unflatten(self.from_x(x_BTD).float(), -1, (self.heads, -1))
        real_BT = None if reading.is_full else reading.real()
        made = []
        with exact(x_BTD):
            for t, gates_BNX in enumerate(gates_BTNX.unbind(1)):
                after = self.step(gates_BNX, state)
                if real_BT is not None:
                    is_real_B11 = real_BT[:, t, None, None]
                    pairs = zip(after, state, strict=True)
                    after = Cells(*(torch.where(is_real_B11, new, old) for new, old in pairs))
                state = after
                made.append(state.h_BNK)
        y_BTNK = torch.stack(made, dim=1)[:, skip:]
        y_BTX = F.layer_norm(y_BTNK, (self.size,), eps=SMALL).flatten(2) * self.gain_X
        y_BTD: Tensor = self.out(y_BTX.to(x_BTD.dtype))
        return y_BTD, state

    def step(self, gates_BNX: Tensor, state: Cells) -> Cells:
        """Read one token."""
        again_BNX = torch.bmm(state.h_BNK.float().transpose(0, 1), self.again_NKX).transpose(0, 1)
        z_BNK, write_BNK, keep_BNK, out_BNK = (gates_BNX + again_BNX).chunk(4, dim=-1)
        keep_BNK = F.logsigmoid(keep_BNK) + state.most_BNK
        most_BNK = torch.maximum(keep_BNK, write_BNK).detach()  # it cancels
        f_BNK, i_BNK = (keep_BNK - most_BNK).exp(), (write_BNK - most_BNK).exp()
        c_BNK = f_BNK * state.c_BNK + i_BNK * torch.tanh(z_BNK)
        n_BNK = f_BNK * state.n_BNK + i_BNK
        return Cells(c_BNK, n_BNK, most_BNK, torch.sigmoid(out_BNK) * c_BNK / (n_BNK + SMALL))

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices; the recurrent ones are of one head."""
        inner = shape.heads * shape.head_size
        into = linear(shape.width, 4 * inner, load.tokens, bias=True)
        again = linear(inner, 4 * shape.head_size, load.tokens)
        return into + again + weights(inner) + linear(inner, shape.width, load.tokens, shape.bias)

"""Other kinds of self-attention (slot "mixer"): differential, latent, and with the first layer's values."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.attention import Attention, Heads, pairs, seen_keys
from nextword.blocks.cache import KeysValues, Memory, Reading
from nextword.blocks.cost import Cost, Load, linear, weights
from nextword.blocks.positions import NoPosition, Places, Rotary
from nextword.blocks.rms import rms_norm
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.errors import ConfigError
from nextword.core.settings import Settings


class ValueResidual(Attention):
    """v ← λ₁ v + λ₂ v of the first layer: later layers see the tokens themselves (Zhou et al. 2024)."""

    mixes_values: ClassVar[bool] = True
    roles: ClassVar[Roles] = {"out": Role.OUT, "shares": Role.SCALE}

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape, position)
        self.is_first = shape.index == 0
        if not self.is_first:
            self.shares = nn.Parameter(torch.full((2,), 0.5))

    def forward(
        self, x_BTD: Tensor, state: KeysValues, reading: Reading, skip: int = 0
    ) -> tuple[Tensor, KeysValues]:
        """Mix the values before they are kept: the first layer's need not be."""
        q_BNTK, k_BNTK, v_BNTK = self.project(x_BTD, reading.places)
        first_BNTK = reading.shared.setdefault("first values", v_BNTK)
        if not self.is_first:
            v_BNTK = self.shares[0] * v_BNTK + self.shares[1] * first_BNTK
        return self.attend(q_BNTK, k_BNTK, v_BNTK, state, reading, skip)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count two numbers more, in all layers but the first."""
        return super().cost(shape, load) + weights(2 if shape.index else 0)


class Differential(Heads):
    """softmax(q₁k₁) V - λ softmax(q₂k₂) V: what both look at cancels, as noise does (Ye et al. 2025).

    Half as many heads, each with two queries and keys and twice as wide values; λ begins at 0.8 - 0.6 e^(-0.3
    l).
    """

    roles: ClassVar[Roles] = {"out": Role.OUT, "gain_V": Role.NORM, "lambdas_4K": Role.SCALE}

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape)
        if shape.heads % 2 or shape.kv_heads != shape.heads:
            raise ConfigError(
                f"'model.mixer' is 'differential', which pairs heads, but there are {shape.heads} of queries "
                f"and {shape.kv_heads} of keys; make 'model.heads' even, and leave out 'model.kv_heads'"
            )
        self.causal, own = shape.causal, position.of_layer(shape)
        self.position = (own,)
        if not any(own is each for each in position.modules()):
            self.own_position = own
        inner = shape.heads * self.head_size
        self.from_x = nn.Linear(shape.width, 3 * inner, shape.biased_attention)
        self.gain_V = nn.Parameter(torch.ones(2 * self.head_size))
        self.lambdas_4K = nn.Parameter(torch.empty(4, self.head_size).normal_(std=0.1))
        self.first = 0.8 - 0.6 * math.exp(-0.3 * shape.index)
        self.out = nn.Linear(inner, shape.width, shape.biased_attention)

    def start(self, batch: int, source: Memory | None = None) -> KeysValues:
        """Return an empty cache."""
        weight, half = self.from_x.weight, self.heads // 2
        return KeysValues(
            weight.new_zeros(batch, self.heads, 0, self.head_size),
            weight.new_zeros(batch, half, 0, 2 * self.head_size),
        )

    def forward(
        self, x_BTD: Tensor, state: KeysValues, reading: Reading, skip: int = 0
    ) -> tuple[Tensor, KeysValues]:
        """Attend twice and subtract."""
        q_BTX, k_BTX, v_BTX = self.from_x(x_BTD).float().chunk(3, dim=-1)
        turn, places = self.position[0].turn, reading.places
        q_BNTK, k_BNTK = (turn(self.split(each), places).transpose(1, 2) for each in (q_BTX, k_BTX))
        v_BMTV = torch.unflatten(v_BTX, -1, (self.heads // 2, -1)).transpose(1, 2)
        state = KeysValues(reading.append(state.keys_BNSK, k_BNTK), reading.append(state.values_BNSK, v_BMTV))
        keys_BNSK, values_BMSV = (part[:, :, : reading.keys] for part in state)
        bias, mask = self.position[0].bias(places, reading.keys), seen_keys(self.causal, reading)
        if bias is not None:
            mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
        mask = mask if mask is None else mask[..., skip:, :]
        found_BNTV = self.weigh(q_BNTK[:, :, skip:], keys_BNSK, values_BMSV.repeat_interleave(2, dim=1), mask)
        plus_BMTV, minus_BMTV = torch.unflatten(found_BNTV, 1, (-1, 2)).unbind(dim=2)
        a, b, c, d = self.lambdas_4K.float()
        share = torch.exp((a * b).sum()) - torch.exp((c * d).sum()) + self.first
        mixed_BMTV = rms_norm(plus_BMTV - share * minus_BMTV, self.gain_V, 1e-5) * (1 - self.first)
        return self.leave(mixed_BMTV), state

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices; values are as wide as two heads, in all heads of queries."""
        inner, bias = shape.heads * shape.head_size, shape.biased_attention
        into = linear(shape.width, 3 * inner, load.tokens, bias)
        out = linear(inner, shape.width, load.tokens, bias)
        position: Cost = find("position", shape.position).layer_cost(shape, load.tokens)
        own = weights(6 * shape.head_size) + position
        return into + out + own + Cost(0, pairs(shape, load) * 3 // 2)


class LatentSettings(Settings):
    """Latent attention (mixer = latent)."""

    size: int = Field(32, ge=1, le=2**16, description="features from which keys and values are computed")
    turned: int = Field(
        8, ge=0, le=2**12, multiple_of=2, description="features of the key that has a position"
    )


class Latent(Heads):
    """Keys and values of all heads from one narrow vector, which alone is kept (DeepSeek-V2, "MLA").

    c = norm(x W), k = c U, v = c O; one key for all heads has the position: RoPE(x W_r). Kept are c and that
    key.
    """

    options: ClassVar[type[Settings]] = LatentSettings
    adds_positions = False  # it has a rotary key of its own
    roles: ClassVar[Roles] = {"out": Role.OUT, "gain_C": Role.NORM}

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape)
        own = shape.of(LatentSettings)
        self.causal, self.narrow, self.turned = shape.causal, own.size, own.turned
        self.turning = Rotary(replace(shape, head_size=own.turned)) if own.turned else NoPosition(shape)
        inner, bias = shape.heads * self.head_size, shape.biased_attention
        self.queries = nn.Linear(shape.width, inner + shape.heads * own.turned, bias)
        self.narrowed = nn.Linear(shape.width, own.size + own.turned, bias)
        self.gain_C = nn.Parameter(torch.ones(own.size))
        self.keys_values = nn.Linear(own.size, 2 * inner, bias=False)
        self.out = nn.Linear(inner, shape.width, bias)
        self.scale = (self.head_size + own.turned) ** -0.5
        self.kv_heads = self.heads

    def start(self, batch: int, source: Memory | None = None) -> KeysValues:
        """Return an empty cache of narrow vectors and turned keys."""
        weight = self.out.weight
        return KeysValues(
            weight.new_zeros(batch, 1, 0, self.turned), weight.new_zeros(batch, 1, 0, self.narrow)
        )

    def forward(
        self, x_BTD: Tensor, state: KeysValues, reading: Reading, skip: int = 0
    ) -> tuple[Tensor, KeysValues]:
        """Attend; keys and values are computed from what is kept."""
        places = reading.places
        q_BTNX = torch.unflatten(self.queries(x_BTD).float(), -1, (self.heads, -1))
        plain_BTNK, turned_BTNK = torch.split(q_BTNX, [self.head_size, self.turned], dim=-1)
        c_BTC, key_BTK = torch.split(self.narrowed(x_BTD).float(), [self.narrow, self.turned], dim=-1)
        key_BTNK = self._turn(key_BTK[:, :, None], places)
        c_BTC = rms_norm(c_BTC, self.gain_C, 1e-6)
        state = KeysValues(
            reading.append(state.keys_BNSK, key_BTNK.transpose(1, 2)),
            reading.append(state.values_BNSK, c_BTC[:, None]),
        )
        key_BNSK, c_BNSC = (part[:, :, : reading.keys] for part in state)
        both_BSX = self.keys_values(c_BNSC[:, 0])
        k_BNSK, v_BNSK = torch.unflatten(both_BSX.float(), -1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        keys_BNSX = torch.cat([k_BNSK, key_BNSK.expand(-1, self.heads, -1, -1)], dim=-1)
        q_BTNX = torch.cat([plain_BTNK, self._turn(turned_BTNK, places)], dim=-1)
        mask = seen_keys(self.causal, reading)
        mask = mask if mask is None else mask[..., skip:, :]
        return self.leave(self.weigh(q_BTNX.transpose(1, 2)[:, :, skip:], keys_BNSX, v_BNSK, mask)), state

    def _turn(self, x_BTNK: Tensor, places: Places) -> Tensor:
        return self.turning.turn(x_BTNK, places) if self.turned else x_BTNK

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices, and the pairs, whose keys are wider than their values."""
        own, inner, bias = shape.of(LatentSettings), shape.heads * shape.head_size, shape.biased_attention
        queries = linear(shape.width, inner + shape.heads * own.turned, load.tokens, bias)
        narrow = linear(shape.width, own.size + own.turned, load.tokens, bias)
        wide = linear(own.size, 2 * inner, load.tokens) + linear(inner, shape.width, load.tokens, bias)
        products = load.tokens * load.length * (2 * inner + shape.heads * own.turned)
        return queries + narrow + wide + Cost(own.size, products)

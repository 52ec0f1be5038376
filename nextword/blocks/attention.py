"""Attention over the words so far: the mixer of the Transformer; the slot "mixer".

"Self-attention only on words generated uptil now, not on whole sentence" [MAUSAM "Decoders"]; "Multiple
heads" [MAUSAM "Transformers (2017) Made Many Changes at Once!"]; shared keys and values: Ainslie et al. 2023.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.cache import KeysValues, Reading
from nextword.blocks.positions import NoPosition
from nextword.blocks.rms import rms_norm
from nextword.blocks.shape import Shape
from nextword.core.catalog import find


class QKNorm(nn.Module):
    """Queries and keys have root mean square 1, times a gain: scores cannot run away (Henry et al. 2020)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.eps, self.heads = shape.norm_eps, shape.heads
        self.query_gain_K = nn.Parameter(torch.ones(shape.head_size))
        self.key_gain_K = nn.Parameter(torch.ones(shape.head_size))

    def forward(self, x_BTNK: Tensor) -> Tensor:
        """Query heads first, then key heads."""
        kinds = (self.heads, x_BTNK.shape[2] - self.heads)
        gains = zip((self.query_gain_K, self.key_gain_K), kinds, strict=True)
        gain_NK = torch.cat([gain_K.expand(count, -1) for gain_K, count in gains])
        return rms_norm(x_BTNK, gain_NK, self.eps)


class NoQKNorm(nn.Module):
    """Queries and keys as they are."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()

    def forward(self, x_BTNK: Tensor) -> Tensor:
        """As they came."""
        return x_BTNK


class Attention(nn.Module):
    """Attention(Q, K, V) = softmax(Q Kᵀ / √K) V in N heads, each word seeing itself and those before it.

    M heads of keys and values serve N heads of queries, N / M each: M = N is multi-head attention,
    M = 1 multi-query. One matrix makes all three. The products with Q, K and V and the softmax are in
    float32 even under bfloat16 autocast, where their derivative would be slow.
    """

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_size = shape.heads, shape.kv_heads, shape.head_size
        self.position = (position,)  # in a tuple: its weights belong to the whole stack
        self.norm = find("qk_norm", shape.qk_norm)(shape)
        self.from_x = nn.Linear(shape.width, (shape.heads + 2 * shape.kv_heads) * self.head_size, shape.bias)
        self.out = nn.Linear(shape.heads * self.head_size, shape.width, shape.bias)

    def start(self, batch: int) -> KeysValues:
        """No keys, no values."""
        none_BNSK = self.from_x.weight.new_zeros(batch, self.kv_heads, 0, self.head_size)
        return KeysValues(none_BNSK, none_BNSK)

    def forward(
        self, x_BTD: Tensor, state: KeysValues, reading: Reading, skip: int = 0
    ) -> tuple[Tensor, KeysValues]:
        """What each word but the first ``skip`` takes from the words up to it; keys and values of all."""
        q_BNTK, k_BNTK, v_BNTK = self._project(x_BTD, reading)
        state = KeysValues(reading.append(state.keys_BNSK, k_BNTK), reading.append(state.values_BNSK, v_BNTK))
        keys_BNSK, values_BNSK = (part[:, :, : reading.keys] for part in state)
        mixed_BNTK = self._attend(q_BNTK[:, :, skip:], keys_BNSK, values_BNSK, reading)
        return self.out(mixed_BNTK.transpose(1, 2).flatten(2)), state

    def explain(self, x_BTD: Tensor, reading: Reading) -> tuple[Tensor, Tensor]:
        """``weights_BNTS`` of a pass from nothing, and the output they give: the plain twin of `forward`."""
        q_BNTK, k_BNTK, v_BNTK = self._project(x_BTD, reading)
        shared = self.heads // self.kv_heads
        k_BNTK, v_BNTK = (part.repeat_interleave(shared, dim=1) for part in (k_BNTK, v_BNTK))
        scores_BNTS = q_BNTK @ k_BNTK.transpose(-2, -1) * self.head_size**-0.5
        bias = self.position[0].bias(reading.places, reading.keys)
        scores_BNTS = scores_BNTS if bias is None else scores_BNTS + bias
        weights_BNTS = scores_BNTS.masked_fill(~reading.seen(), -torch.inf).softmax(dim=-1)
        return weights_BNTS, self.out((weights_BNTS @ v_BNTK).transpose(1, 2).flatten(2))

    def _project(self, x_BTD: Tensor, reading: Reading) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values; queries and keys are normed and turned together."""
        qkv_BTXK = self.from_x(x_BTD).unflatten(-1, (-1, self.head_size))
        if qkv_BTXK.dtype == torch.bfloat16:
            qkv_BTXK = qkv_BTXK.float()
        qk_BTNK, v_BTNK = qkv_BTXK.split((self.heads + self.kv_heads, self.kv_heads), dim=2)
        qk_BNTK = self.position[0].turn(self.norm(qk_BTNK), reading.places).transpose(1, 2)
        return qk_BNTK[:, : self.heads], qk_BNTK[:, self.heads :], v_BTNK.transpose(1, 2)

    def _attend(self, q_BNTK: Tensor, keys_BNSK: Tensor, values_BNSK: Tensor, reading: Reading) -> Tensor:
        """softmax(Q Kᵀ / √K + bias) V over the keys that a word sees."""
        mask, is_causal = reading.mask, reading.is_causal
        bias = self.position[0].bias(reading.places, reading.keys)
        skip = reading.T - q_BNTK.shape[2]
        if bias is not None:
            mask, is_causal = bias.masked_fill(~reading.seen(), -torch.inf)[..., skip:, :], False
        elif skip:
            mask, is_causal = reading.seen()[..., skip:, :], False
        if torch.is_autocast_enabled(q_BNTK.device.type):
            with torch.autocast(q_BNTK.device.type, enabled=False):
                return self._weigh(q_BNTK, keys_BNSK, values_BNSK, mask, is_causal)
        return self._weigh(q_BNTK, keys_BNSK, values_BNSK, mask, is_causal)

    def _weigh(
        self, q_BNTK: Tensor, keys_BNSK: Tensor, values_BNSK: Tensor, mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        is_shared = self.kv_heads != self.heads
        return F.scaled_dot_product_attention(
            q_BNTK, keys_BNSK, values_BNSK, mask, is_causal=is_causal, enable_gqa=is_shared
        )

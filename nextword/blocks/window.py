"""Attention over the last tokens only, in memory that does not grow with the text (slot "mixer").

Beltagy et al. 2020, Mistral 7B. A token sees itself and the w - 1 before it; the state holds keys and values
of the last w - 1 tokens and nothing else. Rows are computed in pieces of about w tokens, so that a text of
any length is read in bounded memory [MAUSAM "What is missing in Transformers": long sequences]. Sinks (Xiao
et al. 2024, "StreamingLLM"): the first tokens stay visible for ever, at the distance that they have when the
window is just full, so that no distance is new to the model.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from nextword.blocks.attention import Attention, matrices
from nextword.blocks.autocast import exact
from nextword.blocks.cache import KeysValues, Memory, Reading
from nextword.blocks.convolution import Tail, with_tail
from nextword.blocks.cost import Cost, Load, linear
from nextword.blocks.positions import NoPosition
from nextword.blocks.recurrent_mixers import refuse_both_sides
from nextword.blocks.shape import Shape
from nextword.blocks.weighing import masked
from nextword.core.catalog import find
from nextword.core.settings import Settings


class WindowedSettings(Settings):
    """Attention over the last tokens (mixer = window)."""

    width: int = Field(64, ge=1, le=2**20, description="tokens that a token sees, itself included")
    first: int = Field(0, ge=0, le=1024, description="first tokens of a text that all others see, too: sinks")


class LastKeys(NamedTuple):
    """Keys and values of the last tokens, the newest last, and how many of them there are."""

    keys: Tail
    values: Tail
    count_B: Tensor
    sinks: KeysValues  # of the first tokens, in their slots
    read_B: Tensor  # tokens so far, up to the number of sinks


class WindowAttention(Attention):
    """Self-attention in a window that moves with the token."""

    options: ClassVar[type[Settings]] = WindowedSettings
    looks_at_distance = False
    bounded: ClassVar[bool] = True  # its state does not grow

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape, position)
        refuse_both_sides(shape, "window")
        self.window, self.first = window_of(shape), shape.of(WindowedSettings).first
        self.piece = max(1, min(self.window, shape.context - self.window))

    def start(self, batch: int, source: Memory | None = None) -> LastKeys:  # type: ignore[override]
        """Return an empty past."""
        none = self.from_x.weight.new_zeros(batch, self.window - 1, self.kv_heads * self.head_size)
        sinks = none.new_zeros(batch, self.kv_heads, self.first, self.head_size)
        count_B = torch.zeros(batch, dtype=torch.int64, device=none.device)
        return LastKeys(Tail(none), Tail(none), count_B, KeysValues(sinks, sinks), count_B)

    def forward(
        self, x_BTD: Tensor, state: LastKeys, reading: Reading, skip: int = 0
    ) -> tuple[Tensor, LastKeys]:
        """Attend piece by piece; all but the last w - 1 keys, and the first ones, are forgotten."""
        q_BNTK, k_BNTK, v_BNTK = self.project(x_BTD, reading.places)
        sinks, far_BNTK = state.sinks, None
        if self.first:
            sinks = self._kept(state, k_BNTK, v_BNTK, reading)
            far_BNTK = self._far(x_BTD, reading)
        keys_BXC, keys = with_tail(k_BNTK.transpose(1, 2).flatten(2), state.keys, reading)
        values_BXC, values = with_tail(v_BNTK.transpose(1, 2).flatten(2), state.values, reading)
        before, T = self.window - 1, x_BTD.shape[1]
        made = []
        for at in range(0, T, self.piece):
            size = min(self.piece, T - at)
            part = slice(at, at + size + before)
            keys_BNSK, values_BNSK = self._heads(keys_BXC[:, part]), self._heads(values_BXC[:, part])
            mask = self._band(size, at, state.count_B)
            own_BNTK = q_BNTK[:, :, at : at + size]
            if far_BNTK is None:
                made.append(self.weigh(own_BNTK, keys_BNSK, values_BNSK, mask))
            else:
                far = far_BNTK[:, :, at : at + size]
                made.append(self._with_sinks(own_BNTK, far, keys_BNSK, values_BNSK, mask, sinks, reading, at))
        lengths_B = torch.tensor(reading.lengths, device=state.count_B.device)
        count_B = (state.count_B + lengths_B).clamp(max=before)
        read_B = (state.read_B + lengths_B).clamp(max=self.first)
        after = LastKeys(keys, values, count_B, sinks, read_B)
        return self.leave(torch.cat(made, dim=2)[:, :, skip:]), after

    def _kept(self, state: LastKeys, k_BNTK: Tensor, v_BNTK: Tensor, reading: Reading) -> KeysValues:
        """Return the keys and values of the first tokens, those that are new among them."""
        slots_F = torch.arange(self.first, device=k_BNTK.device)
        at_BF = slots_F - torch.tensor(reading.before, device=k_BNTK.device)[:, None]
        lengths_B1 = torch.tensor(reading.lengths, device=k_BNTK.device)[:, None]
        is_new_BF = (at_BF >= 0) & (at_BF < lengths_B1)
        at_BNFK = at_BF.clamp(0, k_BNTK.shape[2] - 1)[:, None, :, None].expand(-1, *state.sinks[0].shape[1:])
        pairs = zip((k_BNTK, v_BNTK), state.sinks, strict=True)
        kept = [torch.where(is_new_BF[:, None, :, None], new.gather(2, at_BNFK), old) for new, old in pairs]
        return KeysValues(*kept)

    def _far(self, x_BTD: Tensor, reading: Reading) -> Tensor:
        """Return queries as the first tokens see them: no farther away than sinks and window are long."""
        end = self.first + self.window - 1
        before_B1 = torch.tensor(reading.before, device=x_BTD.device)[:, None]
        places_BT = (before_B1 + torch.arange(x_BTD.shape[1], device=x_BTD.device)).clamp(max=end)
        return self.project(x_BTD, places_BT)[0]

    def _with_sinks(
        self, q_BNTK: Tensor, far_BNTK: Tensor, keys_BNSK: Tensor, values_BNSK: Tensor, mask: Tensor,
        sinks: KeysValues, reading: Reading, at: int,
    ) -> Tensor:  # fmt: skip
        """Attend to the window, and to those of the first tokens that are before it."""
        T, device = q_BNTK.shape[2], q_BNTK.device
        before_B11 = torch.tensor(reading.before, device=device)[:, None, None]
        places_BT1 = before_B11 + torch.arange(at, at + T, device=device)[:, None]
        outside_B1TF = (torch.arange(self.first, device=device) <= places_BT1 - self.window)[:, None]
        with exact(q_BNTK):
            near_BNTS = q_BNTK @ self.spread(keys_BNSK).transpose(-2, -1) * self.scale
            first_BNTF = far_BNTK @ self.spread(sinks.keys_BNSK).transpose(-2, -1) * self.scale
            scores_BNTX = torch.cat([first_BNTF, near_BNTS], dim=-1)
            seen = torch.cat([outside_B1TF, mask.expand(len(q_BNTK), 1, T, -1)], dim=-1)
            if self.weighing is None:
                weights_BNTX = masked(scores_BNTX, seen).softmax(dim=-1)
            else:
                weights_BNTX = self.weighing(scores_BNTX, seen)
            values_BNXK = torch.cat([self.spread(sinks.values_BNSK), self.spread(values_BNSK)], dim=2)
            mixed_BNTK: Tensor = weights_BNTX @ values_BNXK
        return mixed_BNTK

    def _heads(self, joined_BXC: Tensor) -> Tensor:
        return torch.unflatten(joined_BXC, -1, (self.kv_heads, self.head_size)).transpose(1, 2)

    def _band(self, size: int, at: int, count_B: Tensor) -> Tensor:
        """Return which keys are seen: the last w of those that exist; or what positions add to them."""
        before = self.window - 1
        keys_S = torch.arange(size + before, device=count_B.device)
        first_T1 = torch.arange(size, device=count_B.device)[:, None]
        band_TS = (keys_S >= first_T1) & (keys_S <= first_T1 + before)
        exists_B1S = (keys_S[None] + at >= before - count_B[:, None])[:, None]
        seen = (band_TS & exists_B1S)[:, None]
        bias = self.position[0].bias(slice(before, before + size), size + before)
        return seen if bias is None else bias.masked_fill(~seen, -torch.inf)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the matrices, and the pairs of every piece and the keys before it."""
        window = window_of(shape)
        piece = max(1, min(window, shape.context - window))
        full, rest = divmod(load.length, piece)
        pairs = full * piece * (piece + window - 1) + rest * (rest + window - 1 if rest else 0)
        first = shape.of(WindowedSettings).first
        own = 2 * (load.rows * pairs + load.tokens * first) * shape.heads * shape.head_size
        weighing: Cost = find("weighing", shape.weighing).cost(shape, load)
        again = linear(shape.width, (shape.heads + 2 * shape.kv_heads) * shape.head_size, load.tokens)
        twice = again.products if first else 0  # queries at two places
        return matrices(shape, load) + Cost(weighing.weights, own + twice)


def window_of(shape: Shape) -> int:
    """Return the width of the window, which is within the context."""
    return min(shape.of(WindowedSettings).width, max(1, shape.context - 1))

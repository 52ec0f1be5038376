"""Attention over the last tokens only, in memory that does not grow with the text (slot "mixer").

Beltagy et al. 2020, Mistral 7B. A token sees itself and the w - 1 before it; the state holds keys and values
of the last w - 1 tokens and nothing else. Rows are computed in pieces of about w tokens, so that a text of
any length is read in bounded memory [MAUSAM "What is missing in Transformers": long sequences].
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from nextword.blocks.attention import Attention, matrices
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.convolution import Tail, with_tail
from nextword.blocks.cost import Cost, Load
from nextword.blocks.positions import NoPosition
from nextword.blocks.recurrent_mixers import refuse_both_sides
from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.settings import Settings


class WindowedSettings(Settings):
    """Attention over the last tokens (mixer = window)."""

    width: int = Field(64, ge=1, le=2**20, description="tokens that a token sees, itself included")


class LastKeys(NamedTuple):
    """Keys and values of the last tokens, the newest last, and how many of them there are."""

    keys: Tail
    values: Tail
    count_B: Tensor


class WindowAttention(Attention):
    """Self-attention in a window that moves with the token."""

    options: ClassVar[type[Settings]] = WindowedSettings
    looks_at_distance = False

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__(shape, position)
        refuse_both_sides(shape, "window")
        self.window = window_of(shape)
        self.piece = max(1, min(self.window, shape.context - self.window))

    def start(self, batch: int, source: Memory | None = None) -> LastKeys:  # type: ignore[override]
        """Return an empty past."""
        none = self.from_x.weight.new_zeros(batch, self.window - 1, self.kv_heads * self.head_size)
        return LastKeys(Tail(none), Tail(none), torch.zeros(batch, dtype=torch.int64, device=none.device))

    def forward(  # type: ignore[override]
        self, x_BTD: Tensor, state: LastKeys, reading: Reading, skip: int = 0
    ) -> tuple[Tensor, LastKeys]:
        """Attend piece by piece; all but the last w - 1 keys are forgotten."""
        q_BNTK, k_BNTK, v_BNTK = self.project(x_BTD, reading.places)
        keys_BXC, keys = with_tail(k_BNTK.transpose(1, 2).flatten(2), state.keys, reading)
        values_BXC, values = with_tail(v_BNTK.transpose(1, 2).flatten(2), state.values, reading)
        before, T = self.window - 1, x_BTD.shape[1]
        made = []
        for at in range(0, T, self.piece):
            size = min(self.piece, T - at)
            part = slice(at, at + size + before)
            keys_BNSK, values_BNSK = self._heads(keys_BXC[:, part]), self._heads(values_BXC[:, part])
            mask = self._band(size, at, state.count_B)
            made.append(self.weigh(q_BNTK[:, :, at : at + size], keys_BNSK, values_BNSK, mask))
        lengths_B = torch.tensor(reading.lengths, device=state.count_B.device)
        count_B = (state.count_B + lengths_B).clamp(max=before)
        return self.leave(torch.cat(made, dim=2)[:, :, skip:]), LastKeys(keys, values, count_B)

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
        own = 2 * load.rows * pairs * shape.heads * shape.head_size
        weighing: Cost = find("weighing", shape.weighing).cost(shape, load)
        return matrices(shape, load) + Cost(weighing.weights, own)


def window_of(shape: Shape) -> int:
    """Return the width of the window, which is within the context."""
    return min(shape.of(WindowedSettings).width, max(1, shape.context - 1))

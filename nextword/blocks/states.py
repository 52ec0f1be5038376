"""States as nested tuples of tensors whose rows are the batch: begin them, choose rows, set rows back.

h(0) is the initial hidden state [IITD-1 "A Simple RNN Language Model"]: zero, or learnt like a weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

State = Any  # nested tuples of tensors, the batch first in each


def map_state(change: Callable[..., Tensor], state: State, *others: State) -> State:
    """``change`` of every tensor (and of those in its place in the others), in the same tuples."""
    if isinstance(state, Tensor):
        return change(state, *others)
    return tuple(map_state(change, *parts) for parts in zip(state, *others, strict=True))


def pick(state: State, rows_B: Tensor) -> State:
    """These rows, in this order; rows may repeat."""
    return map_state(lambda part_BX: part_BX.index_select(0, rows_B), state)


def detach(state: State) -> State:
    """The same numbers, without the way they came about."""
    return map_state(Tensor.detach, state)


def reset(state: State, begun: State, rows_B: Tensor) -> State:
    """Rows that are True are set to ``begun``, which has one row for all or as many."""

    def change(part_BX: Tensor, begun_BX: Tensor) -> Tensor:
        mask = rows_B.view(-1, *[1] * (part_BX.dim() - 1))
        return torch.where(mask, begun_BX.to(part_BX.dtype), part_BX)

    return map_state(change, state, begun)


class ZeroStart(nn.Module):
    """All parts of a state are 0 before the first word."""

    zero_1: Tensor

    def __init__(self, hidden: int, parts: int) -> None:
        super().__init__()
        self.hidden, self.parts = hidden, parts
        self.register_buffer("zero_1", torch.zeros(1), persistent=False)  # it knows type and device

    def forward(self, batch: int) -> tuple[Tensor, ...]:
        """Rows that have read nothing."""
        return tuple(self.zero_1.new_zeros(batch, self.hidden) for _ in range(self.parts))


class LearnedStart(nn.Module):
    """A state of its own, learnt like any weight."""

    def __init__(self, hidden: int, parts: int) -> None:
        super().__init__()
        self.parts_H = nn.ParameterList(nn.Parameter(torch.zeros(hidden)) for _ in range(parts))

    def forward(self, batch: int) -> tuple[Tensor, ...]:
        """Rows that have read nothing."""
        return tuple(part_H.expand(batch, -1) for part_H in self.parts_H)


STARTS = {"zero": ZeroStart, "learned": LearnedStart}

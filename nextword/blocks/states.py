"""States as nested tuples of tensors whose rows are the batch: begin, take, join and reset rows.

h(0) is the initial hidden state [IITD-1 "A Simple RNN Language Model"]: zero, or learned like a weight; the
slot "initial".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.roles import Role, Roles

State = Any  # nested tuples of tensors, the batch first in each


def map_state(change: Callable[..., Tensor], state: State, *others: State) -> State:
    """Apply ``change`` to every tensor (and those in its place in the others); tuples keep their types."""
    if isinstance(state, Tensor):
        return change(state, *others)
    parts = [map_state(change, *parts) for parts in zip(state, *others, strict=True)]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def leaves(state: State) -> list[Tensor]:
    """List the tensors of a state in their order; None, no state at all, has none."""
    if isinstance(state, Tensor):
        return [state]
    return [] if state is None else [leaf for part in state for leaf in leaves(part)]


def filled(structure: State, tensors: Sequence[Tensor]) -> State:
    """Put tensors in the places of a state's own: the inverse of `leaves`."""
    rest: Iterator[Tensor] = iter(tensors)
    return map_state(lambda _: next(rest), structure)


def take_rows(state: State, rows_B: Tensor) -> State:
    """Copy these rows, in this order; rows may repeat. A part that shares tensors takes its rows itself."""
    if isinstance(state, Tensor):
        return state.index_select(0, rows_B.to(state.device))
    if (own := getattr(state, "taken", None)) is not None:
        return own(rows_B)
    parts = [take_rows(part, rows_B) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


def join_rows(states: Sequence[State]) -> State:
    """Put the rows of several states one after another; shorter buffers are filled up with zeros.

    A single state is returned as it is.
    """
    return states[0] if len(states) == 1 else _join(states)


def _join(states: Sequence[State]) -> State:
    first = states[0]
    if isinstance(first, Tensor):
        return _joined(*states)
    if (own := getattr(first, "joined", None)) is not None:
        return own(states)
    parts = [_join(parts) for parts in zip(*states, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)


def _joined(*parts: Tensor) -> Tensor:
    shape = [max(sizes) for sizes in zip(*(part.shape[1:] for part in parts), strict=True)]
    return torch.cat([_padded(part, shape) for part in parts])


def _padded(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    missing = [size - own for size, own in zip(shape, tensor.shape[1:], strict=True)]
    if not any(missing):
        return tensor
    return F.pad(tensor, [end for size in reversed(missing) for end in (0, size)])


def detach(state: State) -> State:
    """Drop the graph, keep the numbers."""
    return map_state(Tensor.detach, state)


def reset(state: State, begun: State, rows_B: Tensor) -> State:
    """Set the rows that are True to ``begun``, which has one row for all or as many."""

    def change(part_BX: Tensor, begun_BX: Tensor) -> Tensor:
        mask = rows_B.view(-1, *[1] * (part_BX.dim() - 1))
        return torch.where(mask, begun_BX.to(part_BX.dtype), part_BX)

    return map_state(change, state, begun)


class ZeroStart(nn.Module):
    """All parts of a state are 0 before the first token."""

    zero_1: Tensor

    def __init__(self, hidden: int, parts: int) -> None:
        super().__init__()
        self.hidden, self.parts = hidden, parts
        self.register_buffer("zero_1", torch.zeros(1), persistent=False)  # follows type and device

    def forward(self, batch: int) -> tuple[Tensor, ...]:
        """Return rows that have read nothing."""
        return tuple(self.zero_1.new_zeros(batch, self.hidden) for _ in range(self.parts))


class LearnedStart(nn.Module):
    """An initial state that is learned like any weight."""

    roles: ClassVar[Roles] = {"parts_H": Role.STATE}

    def __init__(self, hidden: int, parts: int) -> None:
        super().__init__()
        self.parts_H = nn.ParameterList(nn.Parameter(torch.zeros(hidden)) for _ in range(parts))

    def forward(self, batch: int) -> tuple[Tensor, ...]:
        """Return rows that have read nothing."""
        return tuple(part_H.expand(batch, -1) for part_H in self.parts_H)

"""Sources that several rows look at: hypotheses of one beam share keys and values, which are never copied.

A state that holds such tensors says for each row which source it looks at. Rows are taken by taking these
numbers; sources that no row looks at any more are dropped now and then.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

_DROPPED = 0.75  # the tensors are made smaller when no more than this share of the sources is looked at


def take_sources(
    kept: Sequence[Tensor], rows_B: Tensor, taken_B: Tensor
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return the tensors of the sources (the source first), and which source each taken row looks at."""
    rows_B = rows_B.index_select(0, taken_B.to(rows_B.device))
    used = sorted(set(rows_B.tolist()))
    if len(used) > _DROPPED * len(kept[0]):
        return tuple(kept), rows_B
    used_U = torch.tensor(used, dtype=torch.int64, device=rows_B.device)
    smaller = tuple(part.index_select(0, used_U.to(part.device)) for part in kept)
    return smaller, torch.searchsorted(used_U, rows_B)


def join_sources(
    kept: Sequence[Sequence[Tensor]], rows: Sequence[Tensor], dims: Sequence[int]
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Put the sources of several states into one; ``dims``: the axis of each tensor that grows with a source.

    Shorter sources are filled up with zeros; 0 means that a tensor has no such axis.
    """
    joined = []
    for parts, dim in zip(zip(*kept, strict=True), dims, strict=True):
        longest = max(part.shape[dim] for part in parts)
        joined.append(torch.cat([_padded(part, dim, longest) for part in parts]))
    firsts = [0]
    for each in kept[:-1]:
        firsts.append(firsts[-1] + len(each[0]))
    moved = [rows_B + first for rows_B, first in zip(rows, firsts, strict=True)]
    return tuple(joined), torch.cat(moved)


def _padded(part: Tensor, dim: int, size: int) -> Tensor:
    if dim == 0 or part.shape[dim] == size:
        return part
    return F.pad(part, [0, 0] * (part.ndim - 1 - dim) + [0, size - part.shape[dim]])


class Sharing:
    """How rows look at sources: each at its own, as many at each, or in any order.

    `group` puts the queries of one source side by side, so that one product serves all of them.
    """

    def __init__(self, rows_B: Tensor, sources: int) -> None:
        rows = rows_B.tolist()
        self.device = rows_B.device
        self.sources, self.each = sources, max(1, len(rows) // max(1, sources))
        self.is_even = rows == [source for source in range(sources) for _ in range(self.each)]
        self.is_direct = self.is_even and self.each == 1
        if not self.is_even:
            counts = [0] * sources
            places = []
            for source in rows:
                places.append(counts[source])
                counts[source] += 1
            self.each = max(counts)
            self.rows_B, self.places_B = rows_B, torch.tensor(places, device=rows_B.device)
            grid_UR = torch.zeros(sources, self.each, dtype=torch.int64, device=rows_B.device)
            grid_UR[self.rows_B, self.places_B] = torch.arange(len(rows), device=rows_B.device)
            self.grid_UR = grid_UR

    def places(self, rows: int) -> Tensor:
        """Return the number of each row among those of its source."""
        if self.is_even:
            return torch.arange(rows, device=self.device) % self.each
        return self.places_B

    def group(self, q_BNTK: Tensor) -> Tensor:
        """Return ``q_UNXK``: the queries of all rows of a source, X = R · T."""
        if self.is_direct:
            return q_BNTK
        shape = (self.sources, self.each, *q_BNTK.shape[1:])
        q_URNTK = q_BNTK.reshape(shape) if self.is_even else q_BNTK[self.grid_UR]
        return q_URNTK.transpose(1, 2).flatten(2, 3)

    def ungroup(self, y_UNXK: Tensor) -> Tensor:
        """Undo `group`."""
        if self.is_direct:
            return y_UNXK
        U, N, X, K = y_UNXK.shape
        y_URNTK = y_UNXK.reshape(U, N, self.each, X // self.each, K).transpose(1, 2)
        return y_URNTK.flatten(0, 1) if self.is_even else y_URNTK[self.rows_B, self.places_B]

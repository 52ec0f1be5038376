"""Which tokens are read in which window, once a text is longer than the context.

A Transformer sees W tokens at most. When W tokens are read and another comes, the last ``keep`` tokens are
read again as the beginning of a new window, and reading continues after them: every token sees at least
``keep`` tokens before it. The window of a token depends only on the number of tokens before it, so that token
by token, in pieces or all at once is the same; all windows but the first can be read in parallel.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import add

import torch
from torch import Tensor


class Plan:
    """The windows of some rows: ``before`` tokens are in each row's window, ``lengths`` come.

    ``fitting``: how many tokens of each row fit in its present window. The others are in new windows: of all
    rows, first those that are full, then the last one of each row, which stays open.
    """

    def __init__(self, before: list[int], lengths: list[int], context: int, keep: int) -> None:
        self.context, self.keep, self.stride = context, keep, context - keep
        self.fits = max(map(add, before, lengths), default=0) <= context
        if self.fits:
            return
        self.fitting = [min(n, context - b) for b, n in zip(before, lengths, strict=True)]
        self.T = max(self.fitting, default=0)
        found = []
        for row, (all_, fitting) in enumerate(zip(lengths, self.fitting, strict=True)):
            for done in range(fitting, all_, self.stride):
                found.append((done + self.stride >= all_, row, done, min(self.stride, all_ - done)))
        found.sort()
        self.is_last = [last for last, _, _, _ in found]
        self.rows = [row for _, row, _, _ in found]
        self.columns = [column for _, _, column, _ in found]  # of a window's first new token
        self.lengths = [keep + new for _, _, _, new in found]

    def windows(self, ids_BT: Tensor, ids_BS: Tensor) -> Tensor:
        """Return the tokens of every new window, taken from a row's present window and from the new ones."""
        rows_M1 = torch.tensor(self.rows, device=ids_BT.device)[:, None]
        first_M1 = torch.tensor(self.columns, device=ids_BT.device)[:, None]
        fitting_M1 = torch.tensor(self.fitting, device=ids_BT.device)[rows_M1]
        column_MW = first_M1 + torch.arange(-self.keep, self.stride, device=ids_BT.device)
        old_MW = (self.context + column_MW - fitting_M1).clamp(0, self.context - 1)
        is_new_MW = column_MW >= fitting_M1
        new_MW = ids_BT[rows_M1, column_MW.clamp(0, ids_BT.shape[1] - 1)]
        return torch.where(is_new_MW, new_MW, ids_BS[rows_M1, old_MW])

    def parts(self, size: int) -> Iterator[slice]:
        """Yield the windows, this many at a time."""
        return (slice(first, first + size) for first in range(0, len(self.rows), size))

    def new(self, part: slice, device: torch.device) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        """Return row and column of every new token of these windows, its window and its place in that."""
        lengths_M = torch.tensor(self.lengths[part], device=device)
        longest = max(self.lengths[part])
        is_new_MX = torch.arange(self.keep, longest, device=device) < lengths_M[:, None]
        window, step = is_new_MX.nonzero(as_tuple=True)
        rows = torch.tensor(self.rows[part], device=device)[window]
        columns = torch.tensor(self.columns[part], device=device)[window] + step
        return rows, columns, (window, step)

    def last(self, part: slice, device: torch.device) -> Tensor:
        """Return which of these windows stay open."""
        return torch.tensor(
            [place for place, last in enumerate(self.is_last[part]) if last], dtype=torch.int64, device=device
        )

    def owners(self, device: torch.device) -> Tensor:
        """Return where each row's window is: in its old place, or after all rows among the open ones."""
        rows = list(range(len(self.fitting)))
        open_ = [row for row, last in zip(self.rows, self.is_last, strict=True) if last]
        for place, row in enumerate(open_):
            rows[row] = len(self.fitting) + place
        return torch.tensor(rows, device=device)

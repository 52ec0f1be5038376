"""The processes that train one model together; here one alone, for whom there is nothing to agree on.

Every rank knows every batch, since batches are a function of (seed, epoch, index): it takes its rows of it,
and so the order of the text is the same for any number of ranks. Several ranks: `rendezvous`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nextword.core.task import Batch


class Ranks:
    """One process: it has all rows, and decides for itself."""

    rank, world = 0, 1
    has_met = False  # there are others to exchange numbers with

    @property
    def is_first(self) -> bool:
        """Rank 0 writes, tells, and looks at the clock."""
        return self.rank == 0

    @property
    def key(self) -> tuple[int, ...]:
        """Part of the key of random numbers: ranks draw different ones for their different rows."""
        return () if self.world == 1 else (self.rank,)

    def part(self, rows: int) -> slice:
        """The rows of this rank; rank 0 has some whenever there are any."""
        first, last = (-(-rank * rows // self.world) for rank in (self.rank, self.rank + 1))
        return slice(first, last)

    def rows_of(self, batch: Batch) -> Batch:
        """The batch as this rank reads it: its rows; without any, one of which nothing is learned."""
        if self.world == 1:
            return batch
        part = self.part(batch.rows)
        return batch.cut(part) if part.start < part.stop else batch.blank()

    def gathered(self, *numbers: float) -> list[tuple[float, ...]]:
        """The numbers of every rank, by rank."""
        return [numbers]

    def total(self, number: float) -> float:
        """The sum over all ranks, in 64 bits and in their order, so that it is the same on each."""
        return number

    def told(self, value: Any) -> Any:
        """What rank 0 says, as JSON."""
        return value

    def collected(self, value: Any) -> list[Any]:
        """What every rank says to rank 0, as JSON; elsewhere nothing."""
        return [value]

    def first_word(self, text: str) -> str:
        """What the lowest rank says that says anything."""
        return str(self.told(next(filter(None, self.collected(text)), "")))

    def apart(self) -> Ranks:
        """For a trial by rank 0 alone: as many rows as it will have, and nobody to exchange numbers with."""
        return self

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Within this block a lost connection is told as a sentence that names the ranks."""
        yield

    def leave(self) -> None:
        """At the end: rank 0 waits until nobody needs it any more."""


class Apart(Ranks):
    """A rank that is timed alone."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world

"""The processes that train one model together, and how their gradients become one; here a process alone.

Every rank knows every batch, since batches are a function of (seed, epoch, index): it takes its rows of it,
and so the order of the text is the same for any number of ranks. Several ranks meet in `rendezvous`; `ddp`
and `fsdp` are their engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from nextword.core.contracts import State
from nextword.core.task import Batch, BatchLoss, Loss


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

    def all_gather(self, *numbers: float) -> list[tuple[float, ...]]:
        """The numbers of every rank, by rank."""
        return [numbers]

    def total(self, number: float) -> float:
        """The sum over all ranks, in 64 bits and in their order, so that it is the same on each."""
        return number

    def broadcast(self, value: Any) -> Any:
        """What rank 0 says, as JSON."""
        return value

    def gather(self, value: Any) -> list[Any]:
        """What every rank says to rank 0, as JSON; elsewhere nothing."""
        return [value]

    def first_word(self, text: str) -> str:
        """What the lowest rank says that says anything."""
        return str(self.broadcast(next(filter(None, self.gather(text)), "")))

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


class Engine:
    """One process: the network as it is."""

    name = ""

    def __init__(self, ranks: Ranks | None = None) -> None:
        self.ranks = Ranks() if ranks is None else ranks

    def loss(self, network: Any, of: BatchLoss, piece: Any, before: State) -> tuple[Loss, State]:
        """Return the loss of a piece of a batch, and the state after it."""
        return of(network, piece, before)

    def adding(self, is_last: bool) -> AbstractContextManager[None]:
        """Around a piece: only after the last one of an update are gradients exchanged."""
        return nullcontext()

    def divisor(self, tokens: int) -> float:
        """Return what the loss of a piece is divided by, so that all ranks have the mean over tokens."""
        return max(1, tokens)

    def norm(self, network: Any, own: float) -> float:
        """The norm of the whole gradient, from that of the gradients this rank holds."""
        return own

    def is_divided(self, name: str, dimensions: int) -> bool:
        """Whether a rank holds only its rows of this tensor of the training state."""
        return self.ranks.has_met and name.startswith("carried.")

    def rows(self, name: str, total: int) -> slice:
        """Which rows of a divided tensor this rank holds."""
        return self.ranks.part(total)

    def whole(self, network: Any) -> Any:
        """The network with all its weights, to be used as ever, whatever other ranks do meanwhile."""
        return network

"""Ranks, the processes that train one model, and engines, which combine gradients; here for one process.

Every rank knows every batch, since batches are a function of (seed, epoch, index), and takes its rows of it,
so the order of the text is the same for any number of ranks. Several ranks connect in `rendezvous`; `ddp`
and `fsdp` are their engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from nextword.core.contracts import State
from nextword.core.task import Batch, BatchLoss, Loss


class Ranks:
    """A single process: it has all rows and decides alone."""

    rank, world = 0, 1
    is_distributed = False  # whether there are other ranks to exchange numbers with

    @property
    def is_first(self) -> bool:
        """Return whether this is rank 0, which writes, reports and watches the clock."""
        return self.rank == 0

    @property
    def key(self) -> tuple[int, ...]:
        """Return this rank's part of the key of random numbers: ranks draw different ones for their rows."""
        return () if self.world == 1 else (self.rank,)

    def part(self, rows: int) -> slice:
        """Return the rows of this rank; rank 0 has some whenever there are any."""
        first, last = (-(-rank * rows // self.world) for rank in (self.rank, self.rank + 1))
        return slice(first, last)

    def rows_of(self, batch: Batch) -> Batch:
        """Return this rank's rows of a batch; if it has none, a blank row that adds nothing to the loss."""
        if self.world == 1:
            return batch
        part = self.part(batch.rows)
        return batch.cut(part) if part.start < part.stop else batch.blank()

    def all_gather(self, *numbers: float) -> list[tuple[float, ...]]:
        """Return the numbers of every rank, by rank."""
        return [numbers]

    def total(self, number: float) -> float:
        """Return the sum over all ranks, in 64 bits and in rank order, so that it is the same on each."""
        return number

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's value on every rank; it is sent as JSON."""
        return value

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks on rank 0, an empty list elsewhere; they are sent as JSON."""
        return [value]

    def first_message(self, text: str) -> str:
        """Return the message of the lowest rank whose message is not empty."""
        return str(self.broadcast(next(filter(None, self.gather(text)), "")))

    def disconnected(self) -> Ranks:
        """Return this rank without a connection, for a trial: the same share of rows, no exchange."""
        return self

    @contextmanager
    def reporting_failures(self) -> Iterator[None]:
        """Within this block, turn a lost connection into an error that names the ranks."""
        yield

    def leave(self) -> None:
        """Disconnect; rank 0 waits until no other rank needs it."""


class DisconnectedRank(Ranks):
    """A rank that is timed alone: its share of rows, but no connection to the others."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank, self.world = rank, world


class Engine:
    """The engine of a single process: the network as it is."""

    name = ""

    def __init__(self, ranks: Ranks | None = None) -> None:
        self.ranks = Ranks() if ranks is None else ranks

    def loss(self, network: Any, of: BatchLoss, piece: Any, before: State) -> tuple[Loss, State]:
        """Return the loss of a piece of a batch, and the state after it."""
        return of(network, piece, before)

    def accumulating(self, is_last: bool) -> AbstractContextManager[None]:
        """Wrap a piece of an update: gradients are exchanged only after the last one."""
        return nullcontext()

    def divisor(self, tokens: int) -> float:
        """Return what the loss of a piece is divided by, so that gradients are the mean over all tokens."""
        return max(1, tokens)

    def norm(self, network: Any, own: float) -> float:
        """Return the norm of the whole gradient, given that of the gradients on this rank."""
        return own

    def is_sharded(self, name: str, dimensions: int) -> bool:
        """Return whether a rank holds only its rows of this tensor of the training state."""
        return self.ranks.is_distributed and name.startswith("carried.")

    def rows(self, name: str, total: int) -> slice:
        """Return which rows of a sharded tensor this rank holds."""
        return self.ranks.part(total)

    def full_network(self, network: Any) -> Any:
        """Return the network with all its weights, to be used independently of other ranks."""
        return network

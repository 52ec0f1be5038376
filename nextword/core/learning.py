"""What learning by steps needs of a task: batches, an objective with its loss, and held-out examples.

The training loop knows nothing else of what it trains; `core.task` has these names too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from nextword.core.contracts import State


@dataclass(frozen=True)
class Loss:
    """What is made small, summed over a batch; auxiliary losses are shown by their names.

    How many predictions it sums is the batch's ``tokens``: an update has to know that of all its batches
    before it reads the first.
    """

    total: Any  # a scalar tensor that gradients flow back from
    parts: Mapping[str, Any] = field(default_factory=dict)  # scalar tensors that ``total`` already contains


class Batch(Protocol):
    """Some examples: a record of arrays that can be cut by rows, whatever its fields."""

    @property
    def rows(self) -> int:
        """Return how many examples, or rows of a text, it has."""
        ...

    @property
    def tokens(self) -> int:
        """Return how many predictions are learned from."""
        ...

    def cut(self, rows: slice) -> Self:
        """Return these rows alone."""
        ...

    def blank(self) -> Self:
        """Return one row of which nothing is learned, for a rank that has no rows of its own."""
        ...


class Batches(Protocol):
    """A source of batches, a pure function of (seed, epoch, index), so that training can resume anywhere."""

    per_epoch: int  # batches of one epoch
    tokens: int  # predictions of one epoch

    def batches(self, epoch: int, start: int = 0) -> Iterator[Any]:
        """Yield the batches of an epoch, from the one of this index on."""
        ...


class BatchLoss(Protocol):
    """The loss of an update's batches, at one moment of the training."""

    def pieces(self, batch: Any) -> Sequence[Any]:
        """Cut a batch into pieces within which gradients flow (truncated backpropagation); often one."""
        ...

    def __call__(self, network: Any, piece: Any, before: State) -> tuple[Loss, State]:
        """Return the loss of a piece and the state after it; ``before`` is None where nothing was read."""
        ...


class Objective(Protocol):
    """What a training makes small."""

    @property
    def carries(self) -> bool:
        """Return whether the state after a batch is the state before the next."""
        ...

    def at(self, network: Any, progress: float, counts: bool = True) -> BatchLoss:
        """Return the loss at this share of the training; ``counts=False``: for a rank without rows."""
        ...


@dataclass(frozen=True)
class Measurement:
    """What was measured of held-out examples."""

    values: Mapping[str, float | None]  # by name, as in ``metrics.jsonl``
    cost: float  # what decides which weights are best; lower is better
    count: int  # predictions that were measured


class Ranks(Protocol):
    """The processes that train together, as tasks see them."""

    rank: int
    world: int

    def total(self, number: float) -> float:
        """Return the sum over all ranks."""
        ...

    def all_gather(self, *numbers: float) -> list[tuple[float, ...]]:
        """Return the numbers of every rank, by rank."""
        ...


class HeldOut(Protocol):
    """Held-out examples that are measured while a network learns."""

    tokens: int  # predictions in all

    def measure(
        self,
        network: Any,
        tokens: int = 0,
        products: AbstractContextManager[Any] | None = None,
        ranks: Ranks | None = None,
    ) -> Measurement:
        """Measure about so many predictions (0: all); ranks share the work."""
        ...

    def describe(self, values: Mapping[str, float | None]) -> str:
        """Return a measurement as people read it."""
        ...

    def digest(self) -> str:
        """Return the SHA-256 of what is measured."""
        ...


@runtime_checkable
class Sampler(Protocol):
    """Held-out examples that can also show what a network writes by now."""

    def sample(self, network: Any) -> str:
        """Return a short text, always written with the same random numbers."""
        ...


@runtime_checkable
class FinalFacts(Protocol):
    """Held-out examples that tell something of a finished network for ``training.json``."""

    def final_facts(self, network: Any) -> Mapping[str, float]:
        """Return what the facts of the run say, by name."""
        ...

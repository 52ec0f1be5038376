"""What training reads at a time: words, the words to predict after them, and where a state begins anew.

A source of batches is a pure function of (seed, epoch, index), so that training can stop and go on anywhere:
`stream.Columns` where a state is carried from batch to batch, `windows.Windows` where every block stands
alone, `sentences.Sentences` where the documents are short.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ids = npt.NDArray[Any]  # packed ids, int32, in memory or mapped
Kind = str  # a name of the slot "batches"

NOT_COUNTED = -1  # a target that is not learned from: START, and padding


@dataclass(frozen=True)
class Rows:
    """A record of arrays with one row per example; a subclass names its fields (None: not there)."""

    @property
    def rows(self) -> int:
        """Return how many rows it has."""
        return len(next(iter(self._arrays().values())))

    def cut(self, rows: slice) -> Self:
        """Return these rows alone, of every field."""
        return replace(self, **{name: array[rows] for name, array in self._arrays().items()})

    def _arrays(self) -> dict[str, Any]:
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: array for name, array in found.items() if array is not None}


@dataclass(frozen=True)
class Batch(Rows):
    """``targets_BT[b, t]`` is the word after ``inputs_BT[b, t]``; `NOT_COUNTED` where there is none."""

    inputs_BT: Ints
    targets_BT: Ints
    resets_BT: Bools | None = None  # the state is set back before this position is read

    @property
    def tokens(self) -> int:
        """How many predictions are learned from."""
        return int(np.count_nonzero(self.targets_BT != NOT_COUNTED))

    def blank(self) -> Self:
        """Return one row of which nothing is learned."""
        row = self.cut(slice(0, 1))
        return replace(row, targets_BT=np.full_like(row.targets_BT, NOT_COUNTED), resets_BT=None)

    def piece(self, positions: slice) -> Self:
        """Return these positions of every row."""
        return replace(self, **{name: array[:, positions] for name, array in self._arrays().items()})


class Batches(Protocol):
    """A source of batches."""

    per_epoch: int  # batches of one epoch
    tokens: int  # predictions of one epoch: each word of the text once

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from the one of this index on."""
        ...


def generator(seed: int, epoch: int) -> np.random.Generator:
    """The random numbers of one epoch."""
    return np.random.default_rng((seed, epoch))

"""A batch of training data: tokens, the tokens to predict after them, and where the state is reset.

A source of batches is a pure function of (seed, epoch, index), so that training can stop and resume
anywhere: `stream.Columns` where a state is carried from batch to batch, `windows.Windows` where every block
is independent, `sentences.Sentences` where the documents are short.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ids = npt.NDArray[Any]  # packed ids, int32, in memory or memory-mapped
Kind = str  # a name of the slot "batches"

NOT_COUNTED = -1  # a target excluded from the loss: START, and padding


@dataclass(frozen=True)
class Rows:
    """A record of arrays with one row per example; a subclass names its fields (None: not there)."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self._arrays().values())))

    def cut(self, rows: slice) -> Self:
        """Return these rows alone, of every field."""
        return replace(self, **{name: array[rows] for name, array in self._arrays().items()})

    def _arrays(self) -> dict[str, Any]:
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: array for name, array in found.items() if array is not None}


@dataclass(frozen=True)
class Batch(Rows):
    """``targets_BT[b, t]`` is the token after ``inputs_BT[b, t]``; `NOT_COUNTED` where there is none."""

    inputs_BT: Ints
    targets_BT: Ints
    resets_BT: Bools | None = None  # the state is reset before this position is read

    @property
    def tokens(self) -> int:
        """Number of predictions in the loss."""
        return int(np.count_nonzero(self.targets_BT != NOT_COUNTED))

    def blank(self) -> Self:
        """Return one row of which nothing is learned."""
        row = self.cut(slice(0, 1))
        return replace(row, targets_BT=np.full_like(row.targets_BT, NOT_COUNTED), resets_BT=None)

    def piece(self, positions: slice) -> Self:
        """Return these positions of every row."""
        return replace(self, **{name: array[:, positions] for name, array in self._arrays().items()})


def generator(seed: int, epoch: int) -> np.random.Generator:
    """Return the random generator of one epoch."""
    return np.random.default_rng((seed, epoch))

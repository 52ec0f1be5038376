"""What training reads at a time: words, the words to predict after them, and where a state begins anew.

A source of batches is a pure function of (seed, epoch, index), so that training can stop and go on anywhere:
`stream.Columns` where a state is carried from batch to batch, `windows.Windows` where every block stands
alone, `sentences.Sentences` where the documents are short.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ids = npt.NDArray[Any]  # packed ids, int32, in memory or mapped
Kind = Literal["columns", "windows", "sentences"]

NOT_COUNTED = -1  # a target that is not learned from: START, and padding


@dataclass(frozen=True)
class Batch:
    """``targets_BT[b, t]`` is the word after ``inputs_BT[b, t]``; `NOT_COUNTED` where there is none."""

    inputs_BT: Ints
    targets_BT: Ints
    resets_BT: Bools | None = None  # the state is set back before this position is read

    @property
    def tokens(self) -> int:
        """How many predictions are learned from."""
        return int(np.count_nonzero(self.targets_BT != NOT_COUNTED))


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

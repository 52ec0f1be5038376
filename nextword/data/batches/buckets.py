"""Batches of examples of similar length, so that little of a batch is padding.

Which examples share a batch, and the order of the batches, are drawn from (seed, epoch).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nextword.data.batches.batch import Ints, generator
from nextword.data.batches.sentences import cut_by_positions


class Buckets:
    """Rows of examples, batch by batch; a batch has at most this many positions, and at least one row."""

    def __init__(self, lengths: Ints, positions: int, seed: int) -> None:
        self.lengths, self._seed = lengths, seed
        self._sorted = np.sort(lengths)
        self._cuts = cut_by_positions(np.maximum(self._sorted, 1), positions)
        self.per_epoch = len(self._cuts) - 1

    @property
    def real_share(self) -> float:
        """Return the share of positions that hold a word rather than padding."""
        ends = np.asarray(self._cuts[1:])
        sizes = np.diff(self._cuts)
        return float(self.lengths.sum() / max(1, (self._sorted[ends - 1] * sizes).sum()))

    def rows(self, epoch: int, start: int = 0) -> Iterator[Ints]:
        """Yield the rows of each batch of an epoch, from the one of this index on."""
        random = generator(self._seed, epoch)
        shuffled = random.permutation(len(self.lengths))
        by_length = shuffled[np.argsort(self.lengths[shuffled], kind="stable")]
        for number in random.permutation(self.per_epoch)[start:]:
            yield by_length[self._cuts[number] : self._cuts[number + 1]]

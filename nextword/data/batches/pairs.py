"""Batches of pairs: as many positions of source and target as fit, little of them padding.

Pairs are sorted by the length of the target, then of the source, so that both sides of a batch are of
similar length. Which pairs share a batch, and the order of the batches, are drawn from (seed, epoch).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import END, START
from nextword.data.batches.batch import NOT_COUNTED, Ids, Ints, Rows, generator


@dataclass(frozen=True)
class PairRows(Rows):
    """Sources, and targets after START: ``targets_BT[b, t]`` comes after ``inputs_BT[b, t]``."""

    source_BS: Ints
    source_lengths_B: Ints
    inputs_BT: Ints
    targets_BT: Ints  # `NOT_COUNTED` past a row's end
    lengths_B: Ints

    @property
    def tokens(self) -> int:
        """Number of predictions in the loss."""
        return int(np.count_nonzero(self.targets_BT != NOT_COUNTED))

    def blank(self) -> Self:
        """Return one row of which nothing is learned."""
        row = self.cut(slice(0, 1))
        return replace(row, targets_BT=np.full_like(row.targets_BT, NOT_COUNTED))


class Sequences:
    """Many sequences of ids, each as ``START w … END``, one after the other."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.starts_N = np.flatnonzero(np.asarray(ids) == START).astype(np.int64)
        self.lengths_N = np.diff(np.append(self.starts_N, len(ids))) - 1  # END counts, START does not

    def __len__(self) -> int:
        return len(self.starts_N)

    def keep(self, rows_N: npt.NDArray[Any]) -> Sequences:
        """Return some of them, in this order; the ids are shared."""
        made = object.__new__(Sequences)
        made.ids, made.starts_N, made.lengths_N = self.ids, self.starts_N[rows_N], self.lengths_N[rows_N]
        return made

    def cut(self, most: int) -> Sequences:
        """Return them with at most so many tokens each, END included."""
        made = object.__new__(Sequences)
        made.ids, made.starts_N, made.lengths_N = self.ids, self.starts_N, np.minimum(self.lengths_N, most)
        return made

    def take(self, rows_B: Ints, fill: int) -> tuple[Ints, Ints]:
        """Return ``w … END`` of some rows, filled up, and their lengths; a row that was cut ends in END."""
        lengths_B = self.lengths_N[rows_B]
        t_T = np.arange(max(1, int(lengths_B.max(initial=1))))
        real_BT = t_T < lengths_B[:, None]
        places_BT = np.where(real_BT, self.starts_N[rows_B][:, None] + 1 + t_T, 0)
        ids_BT: Ints = np.where(real_BT, self.ids[places_BT], fill).astype(np.int64)
        has_any_B = lengths_B > 0
        ids_BT[np.flatnonzero(has_any_B), lengths_B[has_any_B] - 1] = END
        return ids_BT, lengths_B


class PairSequences:
    """Sources and targets as ids."""

    def __init__(self, source: Sequences, target: Sequences) -> None:
        self.source, self.target = source, target

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows_B: Ints) -> PairRows:
        """Return some pairs as a batch."""
        source_BS, source_lengths_B = self.source.take(rows_B, END)
        targets_BT, lengths_B = self.target.take(rows_B, NOT_COUNTED)
        inputs_BT = np.roll(targets_BT, 1, axis=1)
        inputs_BT[:, 0] = START
        inputs_BT[inputs_BT == NOT_COUNTED] = END
        return PairRows(source_BS, source_lengths_B, inputs_BT, targets_BT, lengths_B)


class PairBatches:
    """Batches of at most so many positions, of source and target together, and at least one row."""

    def __init__(self, pairs: PairSequences, positions: int, seed: int) -> None:
        self.pairs, self._seed = pairs, seed
        order_N = self._order(np.arange(len(pairs)))
        self._cuts, places = _cut(
            pairs.source.lengths_N[order_N], pairs.target.lengths_N[order_N], max(1, positions)
        )
        self.per_epoch = len(self._cuts) - 1
        self.tokens = int(pairs.target.lengths_N.sum())
        real = int(pairs.source.lengths_N.sum()) + self.tokens
        self.real_share = real / max(1, places)

    def batches(self, epoch: int, start: int = 0) -> Iterator[PairRows]:
        """Yield the batches of an epoch, from the one of this index on."""
        for rows_B in self.rows(epoch, start):
            yield self.pairs.take(rows_B)

    def rows(self, epoch: int, start: int = 0) -> Iterator[Ints]:
        """Yield the rows of each batch of an epoch, from the one of this index on."""
        random = generator(self._seed, epoch)
        order_N = self._order(random.permutation(len(self.pairs)))
        for number in random.permutation(self.per_epoch)[start:]:
            yield order_N[self._cuts[number] : self._cuts[number + 1]]

    def _order(self, shuffled_N: Ints) -> Ints:
        """Sort by target, then by source: upwards and downwards in turn, so that neighbours are alike."""
        target_N, source_N = self.pairs.target.lengths_N[shuffled_N], self.pairs.source.lengths_N[shuffled_N]
        turning_N = np.where(target_N % 2 == 0, source_N, -source_N)
        order_N: Ints = shuffled_N[np.lexsort((turning_N, target_N))]
        return order_N


def _cut(source_N: Ints, target_N: Ints, positions: int) -> tuple[list[int], int]:
    """Cut rows into batches of at most so many positions; return the cuts, and the positions of all."""
    cuts, total = [0], 0
    while cuts[-1] < len(source_N):
        rest = slice(cuts[-1], cuts[-1] + positions)
        widths = np.maximum.accumulate(source_N[rest]) + np.maximum.accumulate(target_N[rest])
        cost = np.arange(1, len(widths) + 1) * widths
        rows = max(1, int(np.searchsorted(cost, positions, side="right")))
        cuts.append(cuts[-1] + rows)
        total += int(cost[rows - 1])
    return cuts, total

"""Batches of whole sequences, for texts of many short documents (messages, titles, single sentences).

Sequences of similar length share a batch, so that little of it is padding; the state is reset in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nextword.data.batches.batch import Batch, Ids, Ints, Stream, check_length, generator


class Sentences:
    """Batches of at most batch x length positions: many short sequences, or a few long ones.

    Longer sequences are cut into pieces of ``length`` tokens. Which sequences share a batch, and the order of
    the batches, are drawn from (seed, epoch).
    """

    def __init__(
        self,
        ids: Ids,
        documents: Sequence[int] | Ints | None = None,
        carry: bool = True,
        batch: int = 20,
        length: int = 35,
        seed: int = 0,
    ) -> None:
        self._stream, self._seed = Stream(ids, documents, carry), seed
        check_length(1, self._stream)
        self._firsts, self._lengths = _pieces(self._stream, length)
        self._cuts = cut_by_positions(np.sort(self._lengths), batch * length)
        self.per_epoch = len(self._cuts) - 1
        self.tokens = self._stream.tokens

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch; every row is read from its start."""
        random = generator(self._seed, epoch)
        shuffled = random.permutation(len(self._lengths))
        by_length = shuffled[np.argsort(self._lengths[shuffled], kind="stable")]
        for number in random.permutation(self.per_epoch)[start:]:
            rows_B = by_length[self._cuts[number] : self._cuts[number + 1]]
            lengths_B = self._lengths[rows_B]
            places_T = np.arange(int(lengths_B.max()))
            batch = self._stream.batch(self._firsts[rows_B, None] + places_T, places_T < lengths_B[:, None])
            resets_BT = np.zeros_like(batch.inputs_BT, dtype=np.bool_)
            resets_BT[:, 0] = True
            yield Batch(batch.inputs_BT, batch.targets_BT, resets_BT)


def _pieces(stream: Stream, length: int) -> tuple[Ints, Ints]:
    """Return the start of each piece in the stream, and its number of pairs."""
    places = stream.places(stream.starts)
    sizes = np.diff(np.append(places, len(stream))) - 1  # the last token of a sequence has no successor
    counts = -(-sizes // length)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    firsts = np.repeat(places, counts) + within * length
    return firsts, np.minimum(length, np.repeat(sizes, counts) - within * length)


def cut_by_positions(sorted_lengths: Ints, positions: int) -> list[int]:
    """Cut increasing lengths into batches of at most this many positions; at least one row each."""
    cuts = [0]
    while cuts[-1] < len(sorted_lengths):
        rest = sorted_lengths[cuts[-1] : cuts[-1] + positions]
        cost = np.arange(1, len(rest) + 1) * rest
        cuts.append(cuts[-1] + max(1, int(np.searchsorted(cost, positions, side="right"))))
    return cuts

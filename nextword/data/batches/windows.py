"""Batches of independent blocks: T tokens and their successors, in random order.

For models with a limited context: Transformer and window [XMU "Recap: next token prediction
and auto-regressive models"]. The cuts move from epoch to epoch, so that no token always starts its block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nextword.data.batches.batch import Batch, Bools, Ids, Ints, Stream, check_length, generator


class Windows:
    """Batches (B, T) of blocks; every token of the text is predicted exactly once per epoch.

    A block is read without context, like a text without START: its first tokens have no left context,
    so the model also learns to predict without one. Blocks may span document ends, which ``resets_BT``
    marks.
    """

    def __init__(
        self,
        ids: Ids,
        documents: Sequence[int] | Ints | None = None,
        carry: bool = True,
        batch: int = 16,
        length: int = 128,
        seed: int = 0,
    ) -> None:
        self.stream, self.seed = Stream(ids, documents, carry), seed
        self._batch, self._length = batch, length
        check_length(length, self.stream)
        self._blocks = -(-self.stream.pairs // length)
        self.per_epoch = -(-self._blocks // batch)
        self.tokens = self.stream.tokens

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch."""
        for _, places_BT, real_BT in self.places(epoch, start):
            yield self.stream.batch(places_BT, real_BT)

    def places(self, epoch: int, start: int = 0) -> Iterator[tuple[int, Ints, Bools]]:
        """Yield index, places and which are real: the stream is shifted, cut, and its blocks shuffled."""
        random, pairs = generator(self.seed, epoch), self.stream.pairs
        shift = int(random.integers(pairs))
        order = random.permutation(self._blocks)
        for index in range(start, self.per_epoch):
            blocks_B1 = order[index * self._batch : (index + 1) * self._batch, None]
            places_BT = blocks_B1 * self._length + np.arange(self._length)
            yield index, (places_BT + shift) % pairs, places_BT < pairs

"""The prefix language model: the tokens of a prefix see each other, those after it what came before.

Raffel et al. 2020, section 3.2 [MAUSAM "Encoders", "Decoders"]: an encoder and a decoder in one stack.
Without a prefix it is a language model like any other, from left to right.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from nextword.data.batches.corrupted import PrefixBatches
from nextword.data.batches.windows import Windows
from nextword.models.transformer import TransformerNetwork, WindowState


class PrefixNetwork(TransformerNetwork):
    """Predicts what follows a prefix that it sees as a whole."""

    rows: ClassVar[type[Any] | None] = PrefixBatches
    predicts: ClassVar[str] = "token after a prefix"

    @classmethod
    def batches(
        cls, ids: Any, documents: Any, batch: int, length: int, seed: int, vocab_size: int, settings: Any
    ) -> Any:
        """Return rows with prefixes of any length."""
        return PrefixBatches(Windows(ids, documents, settings.carry, batch, length, seed), vocab_size)

    def read_rows(self, inputs_BT: Tensor, lengths_B: Tensor, ahead_B: Tensor | None) -> Tensor:
        """Return the features of rows that begin with a prefix."""
        return self.read_prefix(inputs_BT, lengths_B, ahead_B)[0]

    def read_prefix(
        self, ids_BT: Tensor, lengths_B: Tensor, ahead_B: Tensor | None = None
    ) -> tuple[Tensor, WindowState]:
        """Read rows from their beginning; the first ``ahead_B`` tokens of each see each other (None: all)."""
        lengths = lengths_B.tolist()
        ahead = lengths if ahead_B is None else ahead_B.tolist()
        state = self.start(len(ids_BT))
        return self._pass(ids_BT, state, [0] * len(lengths), lengths, 0, ahead)

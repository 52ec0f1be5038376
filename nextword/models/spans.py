"""Models that write spans which a text has lost, each after its mark: the objective of T5.

Raffel et al. 2020 [MAUSAM "Transformers": T5]. Without an encoder the text is a prefix that is seen as a
whole; with one (``model.encoder_layers``) it is a source, and the network is that of the task ``translate``,
which can start from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from nextword.blocks.cost import Cost
from nextword.blocks.states import State
from nextword.data.batches.corrupted import SpanSettings
from nextword.data.batches.sentinels import SpanBatches, SpanPairs
from nextword.data.batches.windows import Windows
from nextword.models.network import Network
from nextword.models.prefix import PrefixNetwork
from nextword.models.span_model import SpanModel
from nextword.models.span_translator import SpanTranslator


class SpanNetwork(PrefixNetwork):
    """Reads the text with its marks as a prefix, then writes the spans; marks are ids behind the tokens."""

    rows: ClassVar[type[Any] | None] = SpanBatches
    options: ClassVar[type[Any]] = SpanSettings
    predicts: ClassVar[str] = "token of a span"

    def __init__(self, settings: Any, vocab_size: int, closed: bool) -> None:
        marks = settings.spans.sentinels
        super().__init__(settings, vocab_size, closed, None, marks, marks)

    @classmethod
    def made(cls, settings: Any, vocab_size: int, closed: bool) -> Network:
        """Make a network with or without an encoder."""
        if not settings.encoder_layers:
            return cls(settings, vocab_size, closed)
        return SpanTranslator(settings, vocab_size, closed)

    @classmethod
    def cost(cls, settings: Any, vocab_size: int) -> Cost | None:
        """Return no formula."""
        return None

    @classmethod
    def batches(
        cls, ids: Any, documents: Any, batch: int, length: int, seed: int, vocab_size: int, settings: Any
    ) -> Any:
        """Return rows of text with marks, then spans; or pairs of both, for an encoder and a decoder."""
        kind = SpanPairs if settings.encoder_layers else SpanBatches
        return kind(Windows(ids, (), True, batch, length, seed), vocab_size, settings.spans)

    def prepare(self, counts_V: Tensor) -> None:
        """Use the counts of the tokens; marks have none."""
        super().prepare(F.pad(counts_V, (0, self.written)))

    def model(self) -> SpanModel:
        """Return what fills blanks of any length."""
        return SpanModel(self)

    def seen_whole(self, ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Return the features of texts, each a prefix."""
        return self.read_prefix(ids_BT, lengths_B)[0]

    def begin(self, left: Sequence[int]) -> tuple[Tensor, State]:
        """Read a text with marks; return the feature that predicts the first token, and the state."""
        ids_1T = torch.tensor([left], device=self.device)
        features_1TD, state = self.read_prefix(ids_1T, torch.tensor([len(left)]))
        return features_1TD[:, -1], state

"""An encoder that reads a text with marks, and a decoder that writes the spans behind them (T5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from nextword.blocks.states import State
from nextword.core.contracts import START, Source
from nextword.data.batches.sentinels import SpanPairs
from nextword.models.seq2seq_transformer import TransformerTranslator, TransformerTranslatorSettings
from nextword.models.span_model import SpanModel


@dataclass(frozen=True)
class Words:
    """How many tokens one side has, marks included."""

    vocab_size: int
    closed: bool


@dataclass(frozen=True)
class Sides:
    """Both sides have one vocabulary."""

    source: Words
    target: Words
    joint: bool = True


class SpanTranslator(TransformerTranslator):
    """The network of the task ``translate``; its tokens are those of the text, and the marks behind them."""

    rows: ClassVar[type[Any] | None] = SpanPairs
    predicts: ClassVar[str] = "token of a span"

    def __init__(self, settings: Any, vocab_size: int, closed: bool) -> None:
        words = Words(vocab_size + settings.spans.sentinels, closed)
        super().__init__(translator_settings(settings), cast(Any, Sides(words, words)))
        self.vocab_size, self.written = vocab_size, settings.spans.sentinels

    def prepare(self, counts_V: Tensor) -> None:
        """Use the counts of the tokens; marks have none."""
        cast(Any, self.head).prepare(F.pad(counts_V, (0, self.head_size - len(counts_V))))

    @property
    def head_size(self) -> int:
        """Return how many tokens and marks are predicted."""
        return int(cast(Any, self.head).vocab_size)

    def model(self) -> SpanModel:
        """Return what fills blanks of any length."""
        return SpanModel(self)

    def begin(self, left: Sequence[int]) -> tuple[Tensor, State]:
        """Read a text with marks as a source, and START."""
        source = Source(torch.tensor([left], device=self.device), torch.tensor([len(left)]))
        starts_11 = torch.full((1, 1), START, device=self.device)
        features_11D, state = self.read(starts_11, self.start(1, source))
        return features_11D[:, 0], state

    def seen_whole(self, ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """Return what the encoder makes of texts."""
        return self.reader(Source(ids_BT, lengths_B)).features_BSD


def translator_settings(settings: Any) -> TransformerTranslatorSettings:
    """Return the settings of the same network in the task ``translate``."""
    there = TransformerTranslatorSettings.model_fields
    values = {name: value for name, value in settings if name in there}
    return TransformerTranslatorSettings(**{**values, "order": values["order"].replace("F", "XF", 1)})

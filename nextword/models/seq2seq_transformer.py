"""The Transformer encoder-decoder: the language model's stack, whose layers also attend to a source.

[MAUSAM "Decoders", "Encoders"]; Vaswani et al. 2017. Parts are named by the same settings as in the language
model; the encoder may be of any kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.block import Chain
from nextword.blocks.cache import Memory
from nextword.blocks.embeddings import Embedding
from nextword.blocks.link import Last
from nextword.core.catalog import find
from nextword.core.contracts import Source
from nextword.core.errors import ConfigError, DataError
from nextword.core.settings import Slot
from nextword.data.paired import PairVocabulary
from nextword.models.build import shape_of
from nextword.models.encoders.transformer import TransformerEncoder
from nextword.models.reread import Plan
from nextword.models.source_reader import SourceReader, SourceSettings
from nextword.models.transformer import TransformerNetwork, TransformerSettings, WindowState, first_state

EMBEDDING = 0.02  # standard deviation of new vectors: a token does not predict itself, though both are tied


class TransformerTranslatorSettings(SourceSettings, TransformerSettings):
    """A Transformer that reads a source."""

    reads_source: ClassVar[bool] = True
    layers: int = Field(3, ge=1, le=4096, description="layers L of the decoder")
    hidden: int = Field(256, ge=1, le=2**16, description="width D of every layer")
    context: int = Field(512, ge=1, le=2**20, description="most tokens of a target, W")
    order: str = Field(
        "AXF", description="parts of the decoder's layers: A mixer, X attention to the source, F feed-forward"
    )
    encoder_stack: Slot["stack", "same"] = Field(
        "same", description="the encoder's stack, as shared or funnel; same: as the decoder's"
    )
    link: Slot["link"] = Field("last", description="what the decoder sees of the encoder: slot link")
    head_bias: bool = Field(True, description="bias of the softmax head; the adaptive one always has its own")
    mask_impossible: bool = Field(
        True, description="softmax head: leave START and UNKNOWN out in training, as when a run is used"
    )


class TransformerTranslator(TransformerNetwork):
    """A Transformer whose layers attend to what an encoder made of the source."""

    attends = True

    def __init__(self, settings: TransformerTranslatorSettings, vocabulary: PairVocabulary) -> None:
        reader = SourceReader(settings, "transformer", settings.hidden, vocabulary)
        shape = replace(shape_of(settings), source_width=reader.width)
        target = vocabulary.target
        super().__init__(settings, target.vocab_size, target.closed, shape)
        self.carries = False
        if isinstance(self.embedding, Embedding):
            nn.init.normal_(self.embedding.weight_VE, std=EMBEDDING)
        if reader.is_shared:
            reader.embedding = self.embedding
        self.reader = reader
        # Where the source is shortened, no weight belongs to a single token of it.
        self.attends = int(reader.encoder.lengths(torch.tensor([8]))) == 8
        if settings.link != "last":
            self.reader.link = self._linked(settings, shape.dropout)

    def _linked(self, settings: TransformerTranslatorSettings, dropout: float) -> Last:
        """Return what mixes the encoder's layers for the decoder's."""
        encoder = self.reader.encoder
        if not isinstance(encoder, TransformerEncoder) or not isinstance(encoder.enter, nn.Identity):
            raise ConfigError(
                f"'model.link' is '{settings.link}', which mixes layers of a Transformer, but "
                f"'model.encoder' is '{settings.encoder}'; leave one of them out"
            )
        if encoder.stack.length_after(encoder.stack.shape, 8) != 8:
            raise ConfigError(
                f"'model.link' is '{settings.link}', which mixes layers of equal length, but "
                f"'model.encoder_stack' is '{encoder.stack.shape.stack}', which shortens the source; leave "
                "one of them out"
            )
        layers, readers = len(encoder.stack.applied()), len(self.stack.applied())
        made: Last = find("link", settings.link)(layers, readers, dropout)
        return made

    def start(self, batch: int, source: Any = None) -> WindowState:
        """Read the source; the windows are empty."""
        assert isinstance(source, Source), "a translator is started with a source"
        return self.after(self.reader.linked(source), batch)

    def after(self, memory: Memory | list[Memory], batch: int) -> WindowState:
        """Return rows that have read nothing but their sources."""
        ids_BS = torch.zeros(batch, 0, dtype=torch.int64, device=self.device)
        zero_B = torch.zeros(batch, dtype=torch.int64)
        return first_state(ids_BS, zero_B, self.stack.start(batch, memory))

    def looked(self, state: WindowState) -> Tensor:
        """Return ``weights_BS`` of the last token: the mean of all heads of the last layer but one."""
        looking = [
            (layer, own)
            for layer, own in zip(self.stack.applied(), state.layers, strict=True)
            if isinstance(layer, Chain) and "X" in layer.order
        ]
        layer, own = looking[max(0, len(looking) - 2)]
        place = layer.order.replace("F", "").index("X")  # feed-forward parts have no state
        weights_BNS: Tensor = cast(Any, layer).cross.looked(own[place])
        return weights_BNS.mean(dim=1)

    def _roll(
        self, ids_BT: Tensor, state: WindowState, before: list[int], plan: Plan
    ) -> tuple[Tensor, WindowState]:
        """Refuse: a decoder does not forget the beginning of what it writes."""
        raise DataError(
            f"a target has more than {self.window} tokens, which is all that this run can read "
            "(model.context); make it shorter, or train with a larger model.context"
        )

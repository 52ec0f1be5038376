"""The Transformer encoder-decoder: the language model's stack, whose layers also attend to a source.

[MAUSAM "Decoders", "Encoders"]; Vaswani et al. 2017. Parts are named by the same settings as in the language
model; the encoder may be of any kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.block import Chain
from nextword.blocks.cache import Memory, Reading
from nextword.blocks.copying import Copying, without_copies
from nextword.blocks.cross import CrossAttention, SourceKeys
from nextword.blocks.embeddings import Embedding
from nextword.blocks.link import Last
from nextword.core.catalog import find
from nextword.core.contracts import Source, State
from nextword.core.errors import ConfigError, DataError
from nextword.core.settings import Slot
from nextword.data.paired import PairVocabulary
from nextword.models.build import shape_of
from nextword.models.encoders.transformer import TransformerEncoder
from nextword.models.reread import Plan
from nextword.models.source_reader import SourceReader, SourceSettings, with_copies
from nextword.models.transformer import DecoderSettings, TransformerNetwork, WindowState, first_state

EMBEDDING = 0.02  # standard deviation of new vectors: a token does not predict itself, though both are tied


class TransformerTranslatorSettings(SourceSettings, DecoderSettings):
    """A Transformer that reads a source."""

    reads_source: ClassVar[bool] = True
    layers: int = Field(3, ge=1, le=4096, description="layers L of the decoder")
    hidden: int = Field(256, ge=1, le=2**16, description="width D of every layer")
    fewest_heads: int = Field(4, ge=1, le=2**16, description="heads of a narrow model, where heads is 0")
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
    earlier: ClassVar[Mapping[str, Any]] = {**DecoderSettings.earlier, "fewest_heads": 1}


class TransformerTranslator(TransformerNetwork):
    """A Transformer whose layers attend to what an encoder made of the source."""

    attends, covers = True, False

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
        self.copying: Copying | None = None
        if settings.copying:
            self._check_copying(settings)
            self.copying, self.head = with_copies(self.head, shape.width, shape.width, vocabulary)

    def _check_copying(self, settings: TransformerTranslatorSettings) -> None:
        """Refuse to copy from a source whose tokens have no features, and tokens further ahead."""
        if hasattr(self, "further"):
            raise ConfigError(
                f"'model.ahead' is {settings.ahead}, but 'model.copying' is true, and only the next token is "
                "copied; leave one of them out"
            )
        if not self.attends:
            raise ConfigError(
                "'model.copying' is true, which copies single tokens of the source, but "
                f"'model.encoder_stack' is '{settings.encoder_stack}', which shortens it; leave one out"
            )

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
        return self.after(self.reader.copied(self.reader.linked(source), source, self.copying), batch)

    def after(self, memory: Memory | list[Memory], batch: int) -> WindowState:
        """Return rows that have read nothing but their sources."""
        ids_BS = torch.zeros(batch, 0, dtype=torch.int64, device=self.device)
        zero_B = torch.zeros(batch, dtype=torch.int64)
        return first_state(ids_BS, zero_B, self.stack.start(batch, memory))

    def looked(self, state: WindowState) -> Tensor:
        """Return ``weights_BS`` of the last token: the mean of all heads of the last layer but one."""
        looking = self._looking(state.layers)
        cross, own = looking[max(0, len(looking) - 2)]
        return cross.looked(own).mean(dim=1)

    def _looking(self, layers: tuple[State, ...]) -> list[tuple[CrossAttention, SourceKeys]]:
        """Return the attention to the source of each layer that has one, and its state."""
        found = []
        for layer, own in zip(self.stack.applied(), layers, strict=True):
            if isinstance(layer, Chain) and "X" in layer.order:
                place = layer.order.replace("F", "").index("X")  # feed-forward parts have no state
                found.append((cast(Any, layer).cross, own[place]))
        return found

    def _run(
        self, ids_BT: Tensor, layers: tuple[State, ...], reading: Reading, skip: int
    ) -> tuple[Tensor, tuple[State, ...]]:
        """Run the stack; what is copied is where the last layer looks, as the mean of its heads."""
        features_BTD, layers = super()._run(ids_BT, layers, reading, skip)
        if self.copying is None:
            return features_BTD, layers
        cross, own = self._looking(layers)[-1]
        weights_BTS = cross.weights(reading.shared["queries"], own).mean(dim=1)
        return self.copying(features_BTD, features_BTD, weights_BTS, own.tokens_US[own.rows_B]), layers

    def _pass(
        self,
        ids_BT: Tensor,
        state: WindowState,
        before: list[int],
        lengths: list[int],
        skip: int = 0,
        ahead: list[int] | None = None,
    ) -> tuple[Tensor, WindowState]:
        """Run one pass; features are as wide where no row has a token."""
        features_BTX, after = super()._pass(ids_BT, state, before, lengths, skip, ahead)
        if self.copying is not None and features_BTX.shape[-1] == self.width:
            features_BTX = self.plain(features_BTX, state)
        return features_BTX, after

    def plain(self, features_BTD: Tensor, state: WindowState) -> Tensor:
        """Return features that copy nothing, as wide as those of this state."""
        if self.copying is None:
            return features_BTD
        return without_copies(features_BTD, self._looking(state.layers)[-1][1].tokens_US.shape[1])

    def _roll(
        self, ids_BT: Tensor, state: WindowState, before: list[int], plan: Plan
    ) -> tuple[Tensor, WindowState]:
        """Refuse: a decoder does not forget the beginning of what it writes."""
        raise DataError(
            f"a target has more than {self.window} tokens, which is all that this run can read "
            "(model.context); make it shorter, or train with a larger model.context"
        )

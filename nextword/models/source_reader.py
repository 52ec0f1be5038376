"""What reads the source of an encoder-decoder: embeddings, and an encoder of any kind.

[PENN "Sequence to sequence": "the encoder"; IITD-2 "Bidirectional RNNs"]
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.cache import Memory
from nextword.blocks.embeddings import make_embedding
from nextword.core.catalog import find
from nextword.core.contracts import Source
from nextword.core.settings import Choice, Settings, Slot
from nextword.data.paired import PairVocabulary
from nextword.models.encoders.encoder import Encoder, EncoderSettings, make_encoder
from nextword.models.encoders.transformer import TransformerEncoder

_OWN = ("layers", "context")  # settings of a decoder that mean something else for its encoder


class SourceSettings(Settings):
    """What every encoder-decoder has beside its decoder."""

    encoder: Slot["encoder", "same"] = Field(
        "same", description="what reads the source: slot encoder; same: of the decoder's kind"
    )
    encoder_layers: int = Field(0, ge=0, le=4096, description="layers of the encoder; 0: as many as layers")


class SourceReader(nn.Module):
    """A source as features, one for each token: ``h_BSD``."""

    def __init__(
        self, settings: Any, family: str, embedding: int, vocabulary: PairVocabulary, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.is_shared, self.scale = vocabulary.joint and settings.tied, scale
        self.embedding: nn.Module = nn.Identity()  # a joint one is put here by the network that owns it
        if not self.is_shared:
            self.embedding = make_embedding(
                settings.embedding_kind, vocabulary.source.vocab_size, embedding, settings.option_groups()
            )
        name = family if settings.encoder == "same" else settings.encoder
        self.encoder: Encoder = make_encoder(name, encoder_settings(settings, name), embedding)
        if isinstance(self.encoder, TransformerEncoder) and self.encoder.width == embedding:
            self.encoder.enter = cast(Any, nn.Identity())  # the vectors themselves are learned
        self.width = self.encoder.width
        self.limit: int | None = getattr(self.encoder, "context", None)  # tokens of the longest source

    def forward(self, source: Source) -> Memory:
        """Read the source; what stands past a row's length changes nothing."""
        x_BSE: Tensor = self.embedding(source.ids_BS) * self.scale
        return Memory(self.encoder(x_BSE, source.lengths_B), source.lengths_B)

    def last(self, memory: Memory) -> Tensor:
        """Return ``last_BD``, the source as one vector: the bottleneck [PENN "The bottleneck problem"]."""
        return self.encoder.last(memory.features_BSD, memory.lengths_B)


def encoder_settings(settings: Any, name: str) -> EncoderSettings:
    """Return the settings of an encoder: those that mean the same in the decoder, its own defaults else."""
    kind, there = find("encoder", name).Settings, type(settings).model_fields
    values = {
        field: getattr(settings, field)
        for field, about in kind.model_fields.items()
        if field in there and field not in _OWN and _same(about, there[field])
    }
    if "order" in values:
        values["order"] = values["order"].replace("X", "")  # an encoder has no source of its own
    made: EncoderSettings = kind(**values, layers=settings.encoder_layers or settings.layers)
    return made


def _same(one: Any, other: Any) -> bool:
    """Tell whether two settings take the same values."""
    slots = [[each for each in field.metadata if isinstance(each, Choice)] for field in (one, other)]
    return bool(one.annotation == other.annotation and slots[0] == slots[1])

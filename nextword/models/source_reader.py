"""What reads the source of an encoder-decoder: embeddings, and an encoder of any kind.

[PENN "Sequence to sequence": "the encoder"; IITD-2 "Bidirectional RNNs"]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.cache import Memory
from nextword.blocks.copying import CopyHead, Copying
from nextword.blocks.embeddings import make_embedding
from nextword.blocks.link import Last
from nextword.core.catalog import find
from nextword.core.contracts import Source, never_next
from nextword.core.errors import ConfigError
from nextword.core.settings import Choice, Settings, Slot
from nextword.data.paired import PairVocabulary, same_tokens
from nextword.models.encoders.encoder import Encoder, EncoderSettings, make_encoder
from nextword.models.encoders.transformer import TransformerEncoder

_SPARE = 64  # positions that are rather filled up than read in a pass of their own
_OWN = ("layers", "context")  # settings of a decoder that mean something else for its encoder


class SourceSettings(Settings):
    """What every encoder-decoder has beside its decoder."""

    encoder: Slot["encoder", "same"] = Field(
        "same", description="what reads the source: slot encoder; same: of the decoder's kind"
    )
    encoder_layers: int = Field(0, ge=0, le=4096, description="layers of the encoder; 0: as many as layers")
    share_inputs: Literal["auto", "yes", "no"] = Field(
        "auto", description="source and target have the same vectors; auto: a joint vocabulary, and tied"
    )
    copying: bool = Field(False, description="copy tokens of the source, too: the pointer-generator")


class SourceReader(nn.Module):
    """A source as features, one for each token: ``h_BSD``."""

    def __init__(
        self, settings: Any, family: str, embedding: int, vocabulary: PairVocabulary, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.is_shared, self.scale = _is_shared(settings, vocabulary), scale
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
        self.link: Last | None = None  # what a decoder's layers see, if not the encoder's last
        self.limit: int | None = getattr(self.encoder, "context", None)  # tokens of the longest source

    def forward(self, source: Source) -> Memory:
        """Read the source; what stands past a row's length changes nothing."""
        ids_BS, lengths_B = source
        groups = [] if torch.is_grad_enabled() else similar_rows(lengths_B.tolist())
        after_B = self.encoder.lengths(lengths_B)
        if len(groups) < 2:
            return Memory(self.encoder(self._embed(ids_BS), lengths_B), after_B)
        parts = []
        for rows_R in (torch.tensor(rows, device=ids_BS.device) for rows in groups):
            own_R = lengths_B[rows_R]
            parts.append((rows_R, self.encoder(self._embed(ids_BS[rows_R, : int(own_R.max())]), own_R)))
        features_BSD = parts[0][1].new_zeros(len(ids_BS), int(after_B.max()), self.width)
        for rows_R, h_RSD in parts:
            features_BSD[rows_R, : h_RSD.shape[1]] = h_RSD
        return Memory(features_BSD, after_B)

    def linked(self, source: Source) -> Memory | list[Memory]:
        """Read the source for a decoder of layers: one for all, or one for each."""
        if self.link is None:
            return self(source)
        x_BSE = self._embed(source.ids_BS)
        outputs = [x_BSE, *self.encoder.layer_outputs(x_BSE, source.lengths_B)]
        return self.link(outputs, self.encoder.lengths(source.lengths_B))

    def _embed(self, ids_BS: Tensor) -> Tensor:
        x_BSE: Tensor = self.embedding(ids_BS)
        return x_BSE if self.scale == 1.0 else x_BSE * self.scale

    def copied(
        self, memory: Memory | list[Memory], source: Source, copying: Copying | None
    ) -> Memory | list[Memory]:
        """Say of a source that was read what may be copied from each position."""
        if copying is None:
            return memory
        tokens_BS = copying.tokens(*source)
        if isinstance(memory, list):
            return [each._replace(tokens_BS=tokens_BS) for each in memory]
        return memory._replace(tokens_BS=tokens_BS)

    def last(self, memory: Memory) -> Tensor:
        """Return ``last_BD``, the source as one vector: the bottleneck [PENN "The bottleneck problem"]."""
        return self.encoder.last(memory.features_BSD, memory.lengths_B)


def similar_rows(lengths: Sequence[int]) -> list[list[int]]:
    """Return the rows in groups of similar length, so that little is filled up."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    found, left = [], [order]
    while left:
        rows = left.pop()
        longest = lengths[rows[0]] if rows else 0
        saved = [(longest - lengths[row]) * (len(rows) - place) for place, row in enumerate(rows)]
        most = max(saved, default=0)
        if most <= _SPARE:
            found.append(rows)
        else:
            left += [rows[: saved.index(most)], rows[saved.index(most) :]]
    return found


def _is_shared(settings: Any, vocabulary: PairVocabulary) -> bool:
    """Tell whether source and target have the same vectors."""
    if settings.share_inputs == "yes" and not vocabulary.joint:
        raise ConfigError(
            "'model.share_inputs' is 'yes', but source and target have vocabularies of their own; set "
            "'text.joint' to true, or leave 'model.share_inputs' out"
        )
    if settings.share_inputs == "auto":
        return bool(vocabulary.joint and settings.tied)
    return bool(settings.share_inputs == "yes")


def with_copies(
    head: nn.Module, width: int, inputs: int, vocabulary: PairVocabulary
) -> tuple[Copying, CopyHead]:
    """Return what copies from a source, and the head of a network that does; ``inputs`` open the gate."""
    target = vocabulary.target
    copying = Copying(inputs, same_tokens(vocabulary))
    return copying, CopyHead(head, width, target.vocab_size, never_next(target.closed))


def encoder_settings(settings: Any, name: str) -> EncoderSettings:
    """Return the settings of an encoder: those that mean the same in the decoder, its own defaults else."""
    kind, there = find("encoder", name).Settings, type(settings).model_fields
    values = {
        field: getattr(settings, field)
        for field, about in kind.model_fields.items()
        if field in there and field not in _OWN and _same(about, there[field])
    }
    if "stack" in values and getattr(settings, "encoder_stack", "same") != "same":
        values["stack"] = settings.encoder_stack
    if "order" in values:
        values["order"] = values["order"].replace("X", "")  # an encoder has no source of its own
    made: EncoderSettings = kind(**values, layers=settings.encoder_layers or settings.layers)
    return made


def _same(one: Any, other: Any) -> bool:
    """Tell whether two settings take the same values."""
    slots = [[each for each in field.metadata if isinstance(each, Choice)] for field in (one, other)]
    return bool(one.annotation == other.annotation and slots[0] == slots[1])

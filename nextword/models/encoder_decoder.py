"""An encoder and a decoder of any parts, with all ways to share embeddings: the model of Narang et al. 2021.

[MAUSAM "Do Transformer Modifications Transfer Across Implementations and Applications?"]. Both are stacks of
the language model's layers; those of the decoder also attend to what the encoder made of the source.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.cache import Reading
from nextword.blocks.clusters import ClusterSettings
from nextword.blocks.cost import Cost, Load
from nextword.blocks.dropout import Dropout
from nextword.blocks.embeddings import FactorSettings, make_embedding
from nextword.blocks.heads import make_head
from nextword.blocks.shape import Shape
from nextword.blocks.softmaxes import SoftmaxesSettings
from nextword.blocks.stack import Stack
from nextword.core.catalog import find
from nextword.core.settings import Settings, Slot
from nextword.models.build import shape_of
from nextword.models.counts import own_options
from nextword.models.parts import DecoderPartSettings, EncoderPartSettings


class EncoderDecoderSettings(Settings):
    """Two stacks, what they share, and the output layer."""

    encoder: EncoderPartSettings = Field(EncoderPartSettings(), description="the layers that read the source")
    decoder: DecoderPartSettings = Field(
        DecoderPartSettings(), description="the layers that write the target"
    )
    link: Slot["link"] = Field("last", description="what the decoder sees of the encoder: slot link")
    embedding_kind: Slot["embedding"] = Field("table", description="tokens as vectors: slot embedding")
    tie: Literal["all", "inputs", "decoder", "none"] = Field(
        "all", description="which share vectors: all, both inputs, input and output of the decoder, or none"
    )
    head: Slot["head"] = Field("softmax", description="output layer: slot head")
    factors: FactorSettings = Field(FactorSettings(), description="factorized embeddings")
    clusters: ClusterSettings = Field(ClusterSettings(), description="adaptive input embeddings")
    softmaxes: SoftmaxesSettings = Field(SoftmaxesSettings(), description="a mixture of softmaxes")
    output_scale: float = Field(0.0, ge=0, description="of features before the head; 0: hidden^-0.5")

    @property
    def shapes(self) -> tuple[Shape, Shape]:
        """Return the sizes of encoder and decoder."""
        encoder, decoder = shape_of(self.encoder), shape_of(self.decoder)
        read = replace(encoder, causal=False, readers=decoder.layers)
        return read, replace(decoder, source_width=encoder.width)


class EncoderDecoder(nn.Module):
    """Ids of source and target in, features of the target out; `head` turns them into distributions."""

    def __init__(
        self, settings: EncoderDecoderSettings, vocab_size: int, forbidden: tuple[int, ...] = ()
    ) -> None:
        super().__init__()
        source, target = settings.shapes
        options, tie = settings.option_groups(), settings.tie
        self.vocab_size, self.width = vocab_size, target.width
        self.source_embedding = make_embedding(settings.embedding_kind, vocab_size, source.width, options)
        self.embedding = self.source_embedding
        if tie in ("decoder", "none"):
            self.embedding = make_embedding(settings.embedding_kind, vocab_size, target.width, options)
        self.source_position = find("position", settings.encoder.position)(source)
        self.position = find("position", settings.decoder.position)(target)
        self.drop = Dropout(target.dropout) if target.dropout else nn.Identity()
        self.source_stack: Stack = find("stack", source.stack)(source, self.source_position)
        self.stack: Stack = find("stack", target.stack)(target, self.position)
        readers = len(self.stack.applied())
        self.link = find("link", settings.link)(len(self.source_stack.applied()), readers, target.dropout)
        tied = self.embedding if tie in ("all", "decoder") else None
        self.head = make_head(
            settings.head, target.width, vocab_size, forbidden, tied, bias=False, options=options
        )
        self.output_scale = settings.output_scale or target.width**-0.5
        find("init", settings.decoder.init)(self)

    def forward(self, source_BS: Tensor, lengths_B: Tensor, ids_BT: Tensor) -> Tensor:
        """Return the features after each token of the target, which is read at once."""
        B, T = ids_BT.shape
        states = self.start(source_BS, lengths_B)
        reading = Reading([0] * B, [T] * B, T, T, ids_BT.device)
        return self.read(ids_BT, states, reading)[0]

    def start(self, source_BS: Tensor, lengths_B: Tensor) -> tuple[Any, ...]:
        """Read the source; return the states of the decoder before any token."""
        outputs = self.encode(source_BS, lengths_B)
        return self.stack.start(len(source_BS), self.link(outputs, self.source_stack.lengths(lengths_B)))

    def encode(self, source_BS: Tensor, lengths_B: Tensor) -> list[Tensor]:
        """Return the input of the encoder's first layer and the output of all, the last one normed."""
        B, S = source_BS.shape
        reading = Reading([0] * B, lengths_B.tolist(), S, S, source_BS.device)
        x_BSD = self.drop(self.source_position.embed(self.source_embedding(source_BS), reading.places))
        if not reading.is_full:
            x_BSD = x_BSD.masked_fill(~reading.real()[..., None], 0.0)
        found = [stream for stream, _ in self.source_stack.run(x_BSD, self.source_stack.start(B), reading)]
        return [x_BSD, *found[:-1], self.source_stack.finish(found[-1])]

    def read(self, ids_BT: Tensor, states: Any, reading: Reading) -> tuple[Tensor, Any]:
        """Read tokens of the target: the features after them, and the states."""
        x_BTD = self.drop(self.position.embed(self.embedding(ids_BT), reading.places))
        features_BTD, states = self.stack(x_BTD, states, reading)
        return features_BTD * self.output_scale, states


def count(settings: EncoderDecoderSettings, vocab_size: int, rows: int, source: int, target: int) -> Cost:
    """Count weights and products for sources and targets of these lengths, by formulas alone."""
    from_shape, to_shape = settings.shapes
    read = Load(rows, source)
    source_stack, stack = find("stack", from_shape.stack), find("stack", to_shape.stack)
    written = Load(rows, target, source_stack.length_after(from_shape, source))
    embedding, head = find("embedding", settings.embedding_kind), find("head", settings.head)
    of_embedding, of_head = own_options(embedding, settings), own_options(head, settings)
    words = embedding.cost(vocab_size, from_shape.width, read.tokens, of_embedding)
    others = embedding.cost(vocab_size, to_shape.width, written.tokens, of_embedding)
    others = others if settings.tie in ("decoder", "none") else Cost(0, others.products)
    if settings.tie in ("all", "decoder"):
        out = embedding.tied_cost(head, to_shape.width, vocab_size, written.tokens, of_head, of_embedding)
    else:
        out = head.cost(to_shape.width, vocab_size, written.tokens, False, of_head)
    positions = [find("position", shape.position).cost(shape) for shape in (from_shape, to_shape)]
    link = find("link", settings.link).cost(from_shape.layers, to_shape.layers, from_shape.width, read)
    stacks = source_stack.cost(from_shape, read) + stack.cost(to_shape, written)
    total: Cost = words + others + out + sum(positions, Cost()) + link + stacks
    return total

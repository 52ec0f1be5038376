"""The Transformer encoder: attention sees the whole sentence [MAUSAM "Encoders"]; Vaswani et al. 2017."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn

from nextword.blocks.cache import Reading
from nextword.blocks.dropout import Dropout
from nextword.blocks.stack import Stack
from nextword.core.catalog import find
from nextword.models.build import shape_of
from nextword.models.encoders.encoder import Encoder, EncoderSettings
from nextword.models.parts import PartSettings


class TransformerEncoderSettings(PartSettings, EncoderSettings):
    """A Transformer whose attention sees the whole sentence; parts as in the language model."""

    layers: int = Field(1, ge=1, le=64, description="stacked layers L")
    context: int = Field(4096, ge=1, description="longest sentence, in words")


class TransformerEncoder(Encoder):
    """The stack of the Transformer language model, not causal."""

    Settings: ClassVar[type[EncoderSettings]] = TransformerEncoderSettings

    def __init__(self, settings: TransformerEncoderSettings, inputs: int) -> None:
        super().__init__()
        shape = replace(shape_of(settings), causal=False)
        self.width, self.context = shape.width, shape.context
        self.enter = nn.Linear(inputs, shape.width)
        self.position = find("position", settings.position)(shape)
        self.drop = Dropout(shape.dropout)
        self.stack: Stack = find("stack", shape.stack)(shape, self.position)
        find("init", settings.init)(self)

    def lengths(self, lengths_B: Tensor) -> Tensor:
        """Return the lengths after pooling, where the stack pools."""
        return self.stack.lengths(lengths_B)

    def layer_outputs(self, x_BTE: Tensor, lengths_B: Tensor) -> list[Tensor]:
        """Return the stream after each layer, the last one normed."""
        B, T = x_BTE.shape[:2]
        reading = Reading([0] * B, lengths_B.tolist(), T, max(T, self.context), x_BTE.device)
        real_BT1 = reading.real()[..., None]
        x_BTD = self.drop(self.position.embed(self.enter(x_BTE) * real_BT1, reading.places))
        found = [stream for stream, _ in self.stack.run(x_BTD, self.stack.start(B), reading)]
        return [*found[:-1], self.stack.finish(found[-1])]

"""The Transformer encoder: attention sees the whole sentence [MAUSAM "Encoders"]; Vaswani et al. 2017."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field, model_validator
from torch import Tensor, nn

from nextword.blocks.cache import Reading
from nextword.blocks.dropout import Dropout
from nextword.blocks.stack import Stack
from nextword.core.catalog import find
from nextword.core.settings import Slot
from nextword.models.build import shape_of
from nextword.models.encoders.encoder import Encoder, EncoderSettings


class TransformerEncoderSettings(EncoderSettings):
    """A Transformer whose attention sees the whole sentence; parts as in the language model."""

    heads: int = Field(0, ge=0, description="attention heads N; 0: one for every 64 features")
    kv_heads: int = Field(0, ge=0, description="heads of keys and values, a divisor of heads; 0: as many")
    head_size: int = Field(0, ge=0, description="features of a head; 0: hidden / heads")
    inner: int = Field(
        0, ge=0, description="inner width of the feed-forward part; 0: 4 (gated: 8/3) x hidden"
    )
    context: int = Field(4096, ge=1, description="longest sentence, in words")
    position: Slot["position"] = Field("rope", description="where a word stands: slot position")
    base: float = Field(10000.0, gt=1, description="base of the waves of rotary and sinusoidal positions")
    norm: Slot["norm"] = Field("rmsnorm", description="slot norm")
    norm_place: Slot["norm_place"] = Field("pre", description="norms before (pre) or after (post) a part")
    norm_eps: float = Field(1e-5, gt=0, description="prevents a norm from dividing by zero")
    qk_norm: Slot["qk_norm"] = Field("rms", description="norm of queries and keys: slot qk_norm")
    ffn: Slot["ffn"] = Field("relu2", description="feed-forward part: slot ffn")
    mixer: Slot["mixer"] = Field("attention", description="what looks at other words: slot mixer")
    connections: Slot["join"] = Field("residual", description="how a part joins the stream: slot join")
    block: Slot["block"] = Field("serial", description="the order of the parts: slot block")
    stack: Slot["stack"] = Field("plain", description="which layers, how often each: slot stack")
    init: Slot["init"] = Field("zero", description="initial weights: slot init")
    bias: bool = Field(False, description="biases in linear maps and norms")

    @model_validator(mode="after")
    def _goes_together(self) -> TransformerEncoderSettings:
        shape_of(self)
        return self

    def parts_at(self, index: int) -> dict[str, str]:
        """Return the parts in which this layer differs; here nothing."""
        return {}


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

    def layer_outputs(self, x_BTE: Tensor, lengths_B: Tensor) -> list[Tensor]:
        """Return the stream after each layer, the last one normed."""
        B, T = x_BTE.shape[:2]
        reading = Reading([0] * B, lengths_B.tolist(), T, max(T, self.context), x_BTE.device)
        real_BT1 = reading.real()[..., None]
        x_BTD = self.drop(self.position.embed(self.enter(x_BTE) * real_BT1, reading.places))
        found = [stream for stream, _ in self.stack.run(x_BTD, self.stack.start(B), reading)]
        return [*found[:-1], self.stack.finish(found[-1])]

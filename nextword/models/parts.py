"""The settings of a Transformer's parts: shared by the language model, encoders and decoders.

A setting names a part of a slot; the options of a part are a group of their own, as ``model.experts.count``,
defined beside the part. A layer may differ from the others: ``model.exceptions``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from nextword.blocks.attentions import LatentSettings
from nextword.blocks.convolution import ConvolutionSettings
from nextword.blocks.experts import ExpertSettings
from nextword.blocks.funnel import FunnelSettings
from nextword.blocks.memory import MemorySettings
from nextword.blocks.relative import BucketSettings
from nextword.blocks.rotary import RotarySettings
from nextword.blocks.rwkv import RWKVSettings
from nextword.blocks.state_space import StateSpaceSettings
from nextword.blocks.synthesizer import SynthesizerSettings
from nextword.blocks.universal import RecurrenceSettings
from nextword.blocks.window import WindowedSettings
from nextword.core import catalog
from nextword.core.settings import ComposedSettings, Slot
from nextword.core.suggestions import suggestion
from nextword.models.build import DIFFER, NAMING, shape_of


class Exceptional(NamedTuple):
    """Layers, numbered from 1, and the settings in which they differ."""

    every: int  # each so-many-th layer; 0: from ``first`` to ``last``
    first: int
    last: int
    sets: Mapping[str, Any]

    def holds(self, index: int) -> bool:
        """Tell whether a layer, from 0, is one of them."""
        if self.every:
            return (index + 1) % self.every == 0
        return self.first <= index + 1 <= self.last


class PartSettings(ComposedSettings):
    """The parts of a stack of Transformer layers. A part's name is one of its slot: `nextword list SLOT`."""

    reads_source: ClassVar[bool] = False  # whether there is a source that layers may attend to
    layers: int = Field(4, ge=1, le=4096, description="number of blocks L")
    hidden: int = Field(128, ge=1, le=2**16, description="width D of every layer")
    heads: int = Field(0, ge=0, le=2**16, description="attention heads N; 0: one for every 64 features")
    fewest_heads: int = Field(1, ge=1, le=2**16, description="heads of a narrow model, where heads is 0")
    kv_heads: int = Field(
        0, ge=0, le=2**16, description="heads of keys and values, a divisor of heads; 0: as many"
    )
    head_size: int = Field(0, ge=0, le=2**16, description="features of a head; 0: hidden / heads")
    inner: int = Field(
        0, ge=0, le=2**20, description="inner width of the feed-forward part; 0: 4 (gated: 8/3) x hidden"
    )
    context: int = Field(256, ge=1, le=2**20, description="tokens that attention sees, W")
    position: Slot["position"] = Field("rope", description="where a token stands: slot position")
    base: float = Field(10000.0, gt=1, description="base of the waves of rotary and sinusoidal positions")
    norm: Slot["norm"] = Field("rmsnorm", description="slot norm")
    norm_place: Slot["norm_place"] = Field("pre", description="norms before (pre) or after (post) a part")
    norm_eps: float = Field(1e-5, gt=0, description="prevents a norm from dividing by zero")
    final_norm: Slot["norm", "same"] = Field("same", description="after the last layer; same: as the others")
    qk_norm: Slot["qk_norm"] = Field("rms", description="norm of queries and keys: slot qk_norm")
    ffn: Slot["ffn"] = Field("relu2", description="feed-forward part: slot ffn")
    mixer: Slot["mixer"] = Field("attention", description="what looks at other tokens: slot mixer")
    weighing: Slot["weighing"] = Field("softmax", description="from scores to weights: slot weighing")
    scale: Slot["scale"] = Field("sqrt", description="what scores of attention are multiplied by: slot scale")
    connections: Slot["join"] = Field("residual", description="how a part joins the stream: slot join")
    block: Slot["block"] = Field("serial", description="the kind of a layer: slot block")
    order: str = Field("AF", description="the parts of a layer in their order: A mixer, F feed-forward")
    stack: Slot["stack"] = Field("plain", description="which layers, how often each: slot stack")
    exceptions: tuple[str, ...] = Field(
        (), description='layers that differ, as in ["every 4: ffn=switch", "1-2: order=A", "11: ffn=memory"]'
    )
    init: Slot["init"] = Field("zero", description="initial weights: slot init")
    bias: bool = Field(False, description="biases in linear maps and norms")
    attention_bias: Literal["same", "yes", "no"] = Field(
        "same", description="biases in the matrices of attention; same: as bias"
    )
    rotary: RotarySettings = Field(RotarySettings(), description="the position rope")
    buckets: BucketSettings = Field(BucketSettings(), description="relative positions")
    convolution: ConvolutionSettings = Field(
        ConvolutionSettings(), description="mixers lightconv, dynamicconv"
    )
    synthesizer: SynthesizerSettings = Field(
        SynthesizerSettings(), description="the mixer synthesizer-factorized"
    )
    experts: ExpertSettings = Field(ExpertSettings(), description="feed-forward parts experts and switch")
    memory: MemorySettings = Field(MemorySettings(), description="the feed-forward part memory")
    windowed: WindowedSettings = Field(WindowedSettings(), description="the mixer window")
    latent: LatentSettings = Field(LatentSettings(), description="the mixer latent")
    state_space: StateSpaceSettings = Field(StateSpaceSettings(), description="the mixers mamba2 and delta")
    rwkv: RWKVSettings = Field(RWKVSettings(), description="the mixer rwkv7")
    funnel: FunnelSettings = Field(FunnelSettings(), description="the stacks funnel and hourglass")
    recurrence: RecurrenceSettings = Field(RecurrenceSettings(), description="the stack universal")

    @model_validator(mode="after")
    def _works_together(self) -> PartSettings:
        shape_of(self)
        return self

    @field_validator("order")
    @classmethod
    def _order(cls, order: str) -> str:
        if not re.fullmatch("[AFX]+", order):
            raise ValueError("it must be letters A (mixer), F (feed-forward) or X (attention to a source)")
        return order

    @field_validator("exceptions")
    @classmethod
    def _exceptions(cls, exceptions: tuple[str, ...]) -> tuple[str, ...]:
        for each in exceptions:
            parse_exception(each)
        return exceptions

    def parts_at(self, index: int) -> Mapping[str, Any]:
        """Return the settings in which this layer, from 0, differs, as {"ffn": "swiglu"}."""
        found: dict[str, Any] = {}
        for each in map(parse_exception, self.exceptions):
            found |= each.sets if each.holds(index) else {}
        return found

    def chosen_parts(self) -> set[tuple[str, str]]:
        """Return the parts of all layers, each with its slot."""
        different = (self.parts_at(index).items() for index in range(self.layers))
        own = {(DIFFER[name], part) for parts in different for name, part in parts if name in NAMING}
        return super().chosen_parts() | own


class EncoderPartSettings(PartSettings):
    """The parts of an encoder beside a decoder."""

    dropout: float = Field(0.0, ge=0, lt=1, description="share of the features dropped between layers")


class DecoderPartSettings(EncoderPartSettings):
    """The parts of a decoder, whose layers attend to a source."""

    reads_source: ClassVar[bool] = True
    order: str = Field(
        "AXF", description="the parts of a layer: A mixer, X attention to the source, F feed-forward"
    )
    cross_heads: int = Field(0, ge=0, le=2**16, description="heads of attention to the source; 0: as many")
    cross_size: int = Field(0, ge=0, le=2**16, description="features of such a head; 0: as the others")


_EXCEPTION = re.compile(r"\s*(?:every\s+(\d+)|(\d+)(?:\s*-\s*(\d+))?)\s*:\s*(\S.*)")


@cache
def parse_exception(text: str) -> Exceptional:
    """Parse ``LAYERS: setting=value …``; layers are ``every N``, ``N`` or ``N-M``, from 1."""
    found = _EXCEPTION.fullmatch(text)
    if found is None or (found[1] and not int(found[1])):
        raise ValueError(
            f"'{text}' must be LAYERS: setting=value, as 'every 4: ffn=switch' or '1-2: order=A'"
        )
    first = int(found[2] or 0)
    return Exceptional(
        int(found[1] or 0), first, int(found[3] or first), dict(map(_setting, found[4].split()))
    )


def _setting(text: str) -> tuple[str, Any]:
    """Parse ``setting=value``; the setting must be one in which layers may differ."""
    name, equals, value = text.partition("=")
    if not equals or name not in DIFFER:
        raise ValueError(f"'{text}' is not setting=value; layers may differ in {', '.join(DIFFER)}")
    slot = DIFFER[name]
    if slot == "number":
        if not value.isdigit():
            raise ValueError(f"'{text}': the value must be a whole number")
        return name, int(value)
    if slot and not catalog.has(slot, value):
        raise ValueError(f"'{text}': {suggestion(value, catalog.names(slot), f'nextword list {slot}')}")
    return name, value

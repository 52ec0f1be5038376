"""The final sizes of a Transformer, from which every part of it is made.

`models.build` makes it from settings, where 0 means "choose", and refuses what does not work together
[MAUSAM "Transformers (2017) Made Many Changes at Once!"].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from nextword.core.settings import Settings

Options = TypeVar("Options", bound=Settings)


@dataclass(frozen=True)
class Shape:
    """Sizes and names of parts; a part reads what it needs.

    ``index`` is the layer that a part is made for, from 0; ``different`` holds the fields in which a layer
    differs from the others: index -> field -> value. ``options`` holds the settings of single parts, each
    kind once: a part that has some asks for them with `of`.
    """

    width: int  # D
    layers: int  # L
    heads: int  # N
    kv_heads: int  # M: heads of keys and values; each serves N / M heads of queries
    head_size: int  # K
    inner: int  # F
    context: int  # W, the longest window
    bias: bool = True
    dropout: float = 0.0
    norm: str = "layernorm"
    norm_eps: float = 1e-5
    norm_place: str = "pre"
    qk_norm: str = "none"
    mixer: str = "attention"
    ffn: str = "relu"
    join: str = "residual"
    block: str = "serial"
    stack: str = "plain"
    cross: str = "attention"
    order: str = "AF"  # of the parts of a layer: A the mixer, X attention to a source, F feed-forward
    final_norm: str = ""  # after the last layer; "": as the others
    attention_bias: bool | None = None  # of attention's matrices; None: as the others
    weighing: str = "softmax"  # from scores to weights
    scale: str = "sqrt"  # of attention's scores: slot "scale"
    position: str = "none"
    base: float = 1e4  # of rotary and sinusoidal positions
    causal: bool = True  # a token sees only those before it; else all of its row
    cross_heads: int = 0  # of attention to a source; 0: as many as the others
    cross_size: int = 0  # features of such a head; 0: as the others
    source_width: int = 0  # of the features that cross-attention attends to; 0: as wide as the stream
    readers: int = 0  # layers of the decoder that reads this encoder
    index: int = 0
    different: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    options: tuple[Settings, ...] = ()

    def at(self, index: int) -> Shape:
        """Return the shape of one layer."""
        return replace(self, index=index, **self.different.get(index, {}))

    def for_part(self, slot: str) -> Shape:
        """Return the shape of a part: attention to a source may have heads of its own."""
        if slot != "cross" or not self.cross_heads:
            return self
        size = self.cross_size or self.head_size
        return replace(self, heads=self.cross_heads, kv_heads=self.cross_heads, head_size=size)

    def of(self, kind: type[Options]) -> Options:
        """Return the settings of this kind, for the part they belong to; its defaults if there are none."""
        return next((each for each in self.options if isinstance(each, kind)), None) or kind()

    @property
    def biased_attention(self) -> bool:
        """Tell whether the matrices of attention have biases."""
        return self.bias if self.attention_bias is None else self.attention_bias

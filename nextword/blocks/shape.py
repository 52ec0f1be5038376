"""The final sizes of a Transformer, from which every part of it is made.

`models.build` makes it from settings, where 0 means "choose", and refuses what does not work together
[MAUSAM "Transformers (2017) Made Many Changes at Once!"].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Shape:
    """Sizes and names of parts; a part reads what it needs.

    ``index`` is the layer that a part is made for, from 0; ``different`` holds the fields in which a layer
    differs from the others: index -> field -> value.
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
    base: float = 1e4  # of rotary and sinusoidal positions
    causal: bool = True  # a token sees only those before it; else all of its row
    source_width: int = 0  # of the features that cross-attention attends to; 0: as wide as the stream
    index: int = 0
    different: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    def at(self, index: int) -> Shape:
        """Return the shape of one layer."""
        return replace(self, index=index, **self.different.get(index, {}))

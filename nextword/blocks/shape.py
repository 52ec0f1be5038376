"""The sizes of a Transformer, settled: what every part of it is made from.

`models.build` makes it from settings, where 0 means "choose", and refuses what cannot go together
[MAUSAM "Transformers (2017) Made Many Changes at Once!"].
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Sizes and names of parts; a part reads what it needs."""

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
    base: float = 1e4  # of rotary and sinusoidal positions

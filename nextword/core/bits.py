"""Bits: the unit in which models with different tokens compare.

Models give natural logarithms (nats); -log2 p bits are what an ideal code pays for an event (Shannon 1948).
"""

from __future__ import annotations

import math

NATS_PER_BIT = math.log(2)


def bits_per_byte(nats: float, size: int) -> float:
    """Divide what codes a text, side costs included, by its size in bytes; infinite for an empty text."""
    return nats / NATS_PER_BIT / size if size else math.inf

"""The frequencies of rotary positions, and how they are stretched for texts longer than those of training.

ω_i = base^(-i/J) of J pairs (Su et al. 2021). Linear: all waves are f times as long (Chen et al. 2023). NTK:
a larger base, so that fast waves hardly change (bloc97 2023). YaRN: waves that turn often in the trained
length stay, slow ones are f times as long, a ramp between; scores are a little sharper (Peng et al. 2024).
Llama 3: the same by wave length, with a smooth passage (Dubey et al. 2024).
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from nextword.core.settings import Settings


class RotarySettings(Settings):
    """Rotary positions (position = rope)."""

    scaling: Literal["none", "linear", "ntk", "yarn", "llama3"] = Field(
        "none", description="how waves are stretched for longer texts"
    )
    factor: float = Field(1.0, ge=1, le=1e4, description="how many times longer the texts are")
    trained: int = Field(0, ge=0, le=2**24, description="tokens of training; 0: model.context / factor")
    fast: float = Field(32.0, gt=0, description="yarn: waves that turn so often in them stay")
    slow: float = Field(1.0, gt=0, description="yarn: waves that turn so often or less are stretched")
    low: float = Field(1.0, gt=0, description="llama3: waves longer than trained / low are stretched")
    high: float = Field(4.0, gt=0, description="llama3: waves shorter than trained / high stay")

    def length(self, context: int) -> float:
        """Return the tokens of training."""
        return self.trained or context / self.factor


def frequencies(pairs: int, base: float, context: int, settings: RotarySettings) -> tuple[Tensor, float]:
    """Return ``frequencies_J`` in float64, and what queries and keys are multiplied by."""
    frequencies_J = base ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
    factor, length = settings.factor, settings.length(context)
    if settings.scaling == "linear":
        return frequencies_J / factor, 1.0
    if settings.scaling == "ntk":
        longer = factor * max(context, length) / length - (factor - 1)
        wide = base * longer ** (pairs / max(pairs - 1, 1))
        return wide ** (-torch.arange(pairs, dtype=torch.float64) / pairs), 1.0
    if settings.scaling == "yarn":
        kept_J = 1 - _ramp(pairs, base, length, settings)
        return frequencies_J * (kept_J + (1 - kept_J) / factor), 0.1 * math.log(factor) + 1.0
    if settings.scaling == "llama3":
        turns_J = length * frequencies_J / (2 * math.pi)
        kept_J = ((turns_J - settings.low) / (settings.high - settings.low)).clamp(0.0, 1.0)
        return frequencies_J * (kept_J + (1 - kept_J) / factor), 1.0
    return frequencies_J, 1.0


def _ramp(pairs: int, base: float, length: float, settings: RotarySettings) -> Tensor:
    """Return 0 for pairs that turn often in the trained length, 1 for slow ones, a line between."""
    first, last = (
        pairs * math.log(length / (turns * 2 * math.pi)) / math.log(base)
        for turns in (settings.fast, settings.slow)
    )
    low, high = max(math.floor(first), 0), min(math.ceil(last), 2 * pairs - 1)
    at_J = torch.arange(pairs, dtype=torch.float64)
    return ((at_J - low) / (high - low or 0.001)).clamp(0.0, 1.0)

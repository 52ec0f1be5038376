"""The learning rate over the training: it rises, stays and falls to zero; the slot "schedule".

Progress is the share of the training that is over, 0 to 1, whatever it is counted in; so a schedule needs to
know neither steps nor minutes. Linear decay and 1 - sqrt: Hägele et al. 2024; cosine: Loshchilov & Hutter
2017.
"""

from __future__ import annotations

import math

from nextword.core.catalog import find
from nextword.models.training import NeuralTrainSettings


def cosine(x: float) -> float:
    """½ (1 + cos πx): as all of these, what is left of the rate at the share x of the decay."""
    return 0.5 * (1 + math.cos(math.pi * x))


def linear(x: float) -> float:
    """1 - x."""
    return 1 - x


def sqrt(x: float) -> float:
    """1 - √x: fast at first."""
    return 1 - math.sqrt(x)


def constant(x: float) -> float:
    """1: it does not fall by itself."""
    return 1.0


def factor(settings: NeuralTrainSettings, progress: float) -> float:
    """What the rate is multiplied by at this point of the training."""
    if progress < settings.warmup:
        return progress / settings.warmup
    begins = max(settings.warmup, 1 - settings.decay)
    if progress <= begins or begins >= 1:
        return 1.0
    left: float = find("schedule", settings.schedule)(min(1.0, (progress - begins) / (1 - begins)))
    return left

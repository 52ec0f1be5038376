"""Learning-rate schedules: warm-up, a constant phase, decay to zero; the slot "schedule".

Progress is the share of training that is done, 0 to 1, so a schedule needs to know neither steps nor minutes.
Linear decay and 1 - sqrt: Hägele et al. 2024; cosine: Loshchilov & Hutter 2017.
"""

from __future__ import annotations

import math

from nextword.core.catalog import find
from nextword.models.training import NeuralTrainSettings


def cosine(x: float) -> float:
    """Return ½ (1 + cos πx): like all of these, the factor on the rate at the share x of the decay."""
    return 0.5 * (1 + math.cos(math.pi * x))


def linear(x: float) -> float:
    """Return 1 - x."""
    return 1 - x


def sqrt(x: float) -> float:
    """Return 1 - √x: fast at first."""
    return 1 - math.sqrt(x)


def constant(x: float) -> float:
    """Return 1: no decay."""
    return 1.0


def factor(settings: NeuralTrainSettings, progress: float) -> float:
    """Return the factor on the learning rate at this point of the training."""
    if progress < settings.warmup:
        return progress / settings.warmup
    begins = max(settings.warmup, 1 - settings.decay)
    if progress <= begins or begins >= 1:
        return 1.0
    left: float = find("schedule", settings.schedule)(min(1.0, (progress - begins) / (1 - begins)))
    return left

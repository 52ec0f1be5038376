"""The learning rate over the training: it rises, stays and falls to zero, knowing how much is left.

Progress is the share of the training that is over, 0 to 1, whatever it is counted in; so a schedule needs to
know neither steps nor minutes. Linear decay and 1 - sqrt: Hägele et al. 2024; cosine: Loshchilov & Hutter
2017.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from nextword.models.training import NeuralTrainSettings

# How much of the rate is left when the share x of the decay is over: 1 at 0, 0 at 1.
DECAYS: Mapping[str, Callable[[float], float]] = {
    "cosine": lambda x: 0.5 * (1 + math.cos(math.pi * x)),
    "linear": lambda x: 1 - x,
    "sqrt": lambda x: 1 - math.sqrt(x),
    "constant": lambda x: 1.0,
    "plateau": lambda x: 1.0,  # it falls by what is measured: see `loop`
}


def factor(settings: NeuralTrainSettings, progress: float) -> float:
    """What the rate is multiplied by at this point of the training."""
    if progress < settings.warmup:
        return progress / settings.warmup
    begins = max(settings.warmup, 1 - settings.decay)
    if progress <= begins or begins >= 1:
        return 1.0
    return DECAYS[settings.schedule](min(1.0, (progress - begins) / (1 - begins)))

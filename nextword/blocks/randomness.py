"""Random numbers as a function of (seed, purpose, step): a training can stop and go on anywhere.

Nothing random is remembered from step to step, and the caller's own generator goes on as if we had not been.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

INITIAL, TRAINING = 0, 1  # purposes


@contextmanager
def seeded(device: torch.device, *key: int) -> Iterator[None]:
    """Within this block torch draws the numbers of this key, on this device and on the CPU."""
    kept = torch.get_rng_state()
    number = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.manual_seed(number)
    elif device.type == "mps":
        torch.mps.manual_seed(number)
    try:
        yield
    finally:
        torch.set_rng_state(kept)

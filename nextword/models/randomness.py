"""Random numbers as a function of (seed, purpose, step): training can stop and resume at any step.

No random state is kept from step to step, and the caller's own generator is left as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

INITIAL, TRAINING = 0, 1  # purposes


@contextmanager
def seeded(device: torch.device, *key: int) -> Iterator[None]:
    """Let torch draw the numbers of this key within the block, on this device and on the CPU."""
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

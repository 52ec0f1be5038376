"""How many processors torch uses, and how its threads wait for each other.

Threads that share a product meet at its end. Where other programs use the processors, one of them is late by
whole time slices, and the default of OpenMP, to wait actively for milliseconds, spends on waiting the very
time that the late one needs. So waiting is active only for about as long as a small product takes, and work
that gains nothing from sharing is done by one thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from nextword.system import machine
from nextword.system.launch import launched

FEW_ROWS = 8  # from so many rows on, a product of a step is worth sharing, whatever its width
SPINS = 1000  # looks at a flag before a thread goes to sleep: 20 to 50 microseconds
_POLICIES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "GOMP_CPU_AFFINITY", "OMP_PROC_BIND")


def wait_briefly() -> None:
    """Before torch is loaded, which brings OpenMP with it; what somebody has set stays."""
    if not any(name in os.environ for name in _POLICIES):
        os.environ["GOMP_SPINCOUNT"] = str(SPINS)


def allowed() -> int:
    """The processors this process may run on; several processes on a machine share them."""
    return launched().share(machine.allowed())


@contextmanager
def using(threads: int) -> Iterator[int]:
    """torch with so many threads (0: all that are allowed) within the block; gives their number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads or allowed())
    try:
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


def for_steps(rows: int) -> AbstractContextManager[object]:
    """Around a loop over positions, each of them some products of so many rows: few rows are one thread's."""
    return using(1) if rows < FEW_ROWS else nullcontext()

"""How many processors torch uses, and how its threads wait for each other.

Threads that share a product meet at its end. Where other programs use the processors, one of them is late by
whole time slices, and the default of OpenMP, to wait actively for milliseconds, spends on waiting the very
time that the late one needs. So waiting is active only for about as long as a small product takes, and work
that gains nothing from sharing is done by one thread.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from nextword.system import machine
from nextword.system.launch import launched

FEW_ROWS = 8  # from so many rows on, a product of a step is worth sharing, whatever its width
SPINS = 1000  # looks at a flag before a thread goes to sleep: 20 to 50 microseconds
_SLICE = 1_000_000  # nanoseconds; the usual slice is about three times as long
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # numbers of the system call
_TELLING = 0.1  # seconds over which the use of processors can be told; the system counts in hundredths
_POLICIES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "GOMP_CPU_AFFINITY", "OMP_PROC_BIND")


def wait_briefly() -> None:
    """Before torch is loaded, which brings OpenMP with it; what somebody has set stays."""
    if not any(name in os.environ for name in _POLICIES):
        os.environ["GOMP_SPINCOUNT"] = str(SPINS)


def ask_for_short_slices() -> bool:
    """Before threads are started: be scheduled more often and for shorter, with no more time in all.

    Threads that meet all the time then run together more often beside other programs. Linux since 6.12 heeds
    it (EEVDF); whether it was told.
    """
    number = _SCHED_SETATTR.get(platform.machine()) if sys.platform == "linux" else None
    if number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    # struct sched_attr: size, policy, flags, nice, priority, runtime (the slice), deadline, period
    attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, nice, 0, _SLICE, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, attributes, 0) == 0)


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


class Others:
    """How many processors other programs use: looked at now and then, and told for the time since."""

    def __init__(self) -> None:
        self.used = 0.0
        self._before = self._now()

    def look(self) -> float:
        """Processors' worth of time, since the look before if that is long enough to tell."""
        wall, busy, own = now = self._now()
        seconds = wall - self._before[0]
        if seconds >= _TELLING:
            self.used = max(0.0, (busy - self._before[1] - own + self._before[2]) / seconds)
            self._before = now
        return self.used

    def _now(self) -> tuple[float, float, float]:
        own = time.process_time()
        return time.monotonic(), machine.busy_seconds() or own, own


_others: Others | None = None


def free() -> int:
    """Processors that nobody else uses at the moment, of those we may use; at least one."""
    global _others
    _others = _others or Others()
    return max(1, allowed() - round(_others.look()))


def while_free(rows: int) -> AbstractContextManager[object]:
    """Around a loop over positions that gains from threads even with few rows, and loses much by waiting.

    Not while something is learned: the last digit may depend on the number of threads.
    """
    import torch

    most = torch.get_num_threads()
    is_fixed = most == 1 or rows >= FEW_ROWS or torch.is_grad_enabled()
    return nullcontext() if is_fixed else using(min(most, free()))


def for_steps(rows: int) -> AbstractContextManager[object]:
    """Around a loop over positions, each of them some products of so many rows: few rows are one thread's."""
    return using(1) if rows < FEW_ROWS else nullcontext()

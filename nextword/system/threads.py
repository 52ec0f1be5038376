"""How many processors torch uses, and how its threads wait for each other.

Threads that share a product synchronize at its end. When other programs use the processors, one thread is
late by whole time slices, and OpenMP's default, spinning for milliseconds, wastes the very time the late
thread needs. So threads spin only for about as long as a small product takes, and work that gains nothing
from sharing runs on one thread.
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

FEW_ROWS = 8  # from this many rows on, a step's products are worth sharing at any width
SPINS = 1000  # checks of a flag before a thread sleeps: 20 to 50 microseconds
_SLICE = 1_000_000  # nanoseconds; the default slice is about three times as long
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # numbers of the system call
_TELLING = 0.1  # seconds: the shortest time over which CPU use is measurable; Linux counts in hundredths
_POLICIES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "GOMP_CPU_AFFINITY", "OMP_PROC_BIND")


def wait_briefly() -> None:
    """Make OpenMP spin briefly; call it before torch is loaded. Values set by the user are kept."""
    if not any(name in os.environ for name in _POLICIES):
        os.environ["GOMP_SPINCOUNT"] = str(SPINS)


def ask_for_short_slices() -> bool:
    """Ask for shorter and more frequent time slices, with the same total; call it before threads start.

    Threads that synchronize often then run at the same time more often beside other programs. Linux since
    6.12 honours it (EEVDF); returns whether the request was accepted.
    """
    number = _SCHED_SETATTR.get(platform.machine()) if sys.platform == "linux" else None
    if number is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    # struct sched_attr: size, policy, flags, nice, priority, runtime (the slice), deadline, period
    attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, nice, 0, _SLICE, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, attributes, 0) == 0)


def allowed() -> int:
    """Return how many processors this process may use; processes on one machine share them.

    A process alone keeps to OMP_NUM_THREADS, as all of torch does; torchrun sets it to 1 for everyone.
    """
    launch = launched()
    share, asked = launch.share(machine.allowed()), os.environ.get("OMP_NUM_THREADS", "")
    is_asked = launch.world == 1 and asked.isascii() and asked.isdigit() and int(asked) > 0
    return min(share, int(asked)) if is_asked else share


@contextmanager
def using(threads: int) -> Iterator[int]:
    """Run torch with this many threads (0: all allowed ones) within the block; yield their number."""
    import torch

    before, wanted = torch.get_num_threads(), threads or allowed()
    if wanted == before:
        yield before
        return
    torch.set_num_threads(wanted)
    try:
        yield torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


class Others:
    """How many processors other programs use, averaged since the last look."""

    def __init__(self) -> None:
        self.used = 0.0
        self._before = self._now()

    def look(self) -> float:
        """Return the processors other programs used since the last look, if that is long enough ago."""
        if time.monotonic() - self._before[0] < _TELLING:  # asked at every step, and the look takes time
            return self.used
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
    """Return the number of processors idle at the moment, of those we may use; at least one."""
    global _others
    _others = _others or Others()
    return max(1, allowed() - round(_others.look()))


def while_free(rows: int) -> AbstractContextManager[object]:
    """Wrap a loop over positions that gains from threads even with few rows, but suffers from waiting.

    Not for training: the last digit may depend on the number of threads.
    """
    import torch

    most = torch.get_num_threads()
    is_fixed = most == 1 or rows >= FEW_ROWS or torch.is_grad_enabled()
    return nullcontext() if is_fixed else using(min(most, free()))


def for_steps(rows: int) -> AbstractContextManager[object]:
    """Wrap a loop over positions of small products: few rows use one thread."""
    return using(1) if rows < FEW_ROWS else nullcontext()

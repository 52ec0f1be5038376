"""Processor time of short work: what other programs do meanwhile does not count."""

from __future__ import annotations

import time
from collections.abc import Callable

TRY = 0.02  # seconds


def seconds(work: Callable[[], object], tries: int) -> list[float]:
    """Return the processor seconds of a call, measured so many times.

    A try is as many calls as take `TRY` seconds: under a limit of processor time (ulimit -t) its clock
    advances by milliseconds only.
    """
    calls = 1
    while _seconds(work, calls) < TRY:  # this also warms up
        calls *= 2
    return [_seconds(work, calls) / calls for _ in range(tries)]


def _seconds(work: Callable[[], object], calls: int) -> float:
    began = time.process_time()
    for _ in range(calls):
        work()
    return time.process_time() - began

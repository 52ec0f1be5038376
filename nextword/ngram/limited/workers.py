"""Count buckets in processes on this machine: as many at once as the memory limit allows.

Processes are spawned, never forked: this one has threads. They leave Ctrl-C to this one, and end with it,
however it ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from nextword.core.errors import TrainingError
from nextword.core.events import Event, Progress, Stage

_PR_SET_PDEATHSIG = 1


def count(work: Callable[..., None], jobs: Sequence[tuple[Any, ...]], workers: int) -> Iterator[Event]:
    """Call ``work`` for every job in this many processes; in this one if that is less than two."""
    yield Stage("counting the buckets", len(jobs), "buckets")
    if workers < 2 or len(jobs) < 2:
        for done, job in enumerate(jobs, start=1):
            work(*job)
            yield Progress(done)
        return
    spawn = get_context("spawn")
    with ProcessPoolExecutor(workers, spawn, initializer=_prepare, initargs=(os.getpid(),)) as pool:
        try:
            with _uninterrupted():
                results = pool.map(work, *zip(*jobs, strict=True))
            for done, _ in enumerate(results, start=1):
                yield Progress(done)
        except BrokenProcessPool as error:
            raise TrainingError(
                "a worker process was killed while counting n-grams, probably for lack of memory; "
                "set a smaller 'train.memory', which makes smaller buckets, and train again"
            ) from error


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Start processes within the block that ignore Ctrl-C from their first moment."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare(parent: int) -> None:
    """Tie a worker to its parent: it dies when the parent does."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)  # Linux
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it ended while we started
        os._exit(1)

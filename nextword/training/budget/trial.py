"""A trial: a few real training steps, to measure the speed. Nothing of it is kept."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from statistics import mean, median
from typing import Protocol, runtime_checkable

from nextword.core.events import returned
from nextword.core.task import Prepared
from nextword.runs.settings import RunSettings
from nextword.training.clock import Clock
from nextword.training.order import Conditions

_PROBE, _PROBES = 256, 20  # width of a small matrix product, and how often it is timed
_STEPS = 4  # timed, after the first, which is slower


@runtime_checkable
class HasOuter(Protocol):
    """A network that names the parts whose size follows from the vocabulary."""

    outer: Collection[str]


@dataclass(frozen=True)
class WeightCounts:
    """How many weights a network has."""

    all: int
    inner: int  # without embeddings and output layer


@dataclass(frozen=True)
class Trial:
    """The speed of a few steps."""

    tokens_per_second: float  # by the clock: what other programs do is in it
    seconds_per_step: float
    tokens_per_step: float
    epoch: int  # tokens of one pass over the text
    carries: bool = False
    work_per_step: float = 0.0  # seconds of the processor; 0: another device works, and the clock counts

    @property
    def speed(self) -> float:
        """Return tokens per second of work, as on a machine that does nothing else."""
        return self.tokens_per_step / (self.work_per_step or self.seconds_per_step)


def count_weights(settings: RunSettings, prepared: Prepared) -> WeightCounts:
    """Count the weights of a network; it is built and discarded (torch's "meta" device loads more slowly)."""
    network = settings.find_task().build(settings, prepared)
    outer = network.outer if isinstance(network, HasOuter) else ()
    sizes = {name: weight.numel() for name, weight in network.named_parameters()}
    inner = sum(size for name, size in sizes.items() if name.partition(".")[0] not in outer)
    return WeightCounts(sum(sizes.values()), inner)


def try_steps(
    settings: RunSettings,
    prepared: Prepared,
    conditions: Conditions,
    seconds: float,
    slowest: float = math.inf,
) -> Trial:
    """Time real steps for about this many seconds; at least two are made.

    One step is enough if it takes more than ``slowest`` seconds.
    """
    from nextword.system import threads
    from nextword.training import loop
    from nextword.training.job import make_job
    from nextword.training.state import begin
    from nextword.training.update import Learner

    unlimited = replace(conditions, clock=Clock(), ranks=conditions.ranks.disconnected())
    _, job = returned(make_job(settings, prepared, unlimited, measured=False))
    state = begin(job)
    train = job.settings
    learner = Learner(job.settings, job.objective)
    upcoming = loop.iterate_batches(job.batches, 0, 0)
    job.network.train()
    took: list[float] = []
    worked: list[float] = []  # by this thread, without the time that it waits
    with threads.using(train.threads):
        while _continues(took, sum(worked), seconds, slowest):
            at, work = time.perf_counter(), time.thread_time()
            batches = []
            for _ in range(train.accumulate):
                state.epoch, state.index, batch = next(upcoming)
                batches.append(batch)
            learner.update(state, batches)
            took.append(time.perf_counter() - at)
            worked.append(time.thread_time() - work)
    per_step = job.batches.tokens / job.batches.per_epoch * train.accumulate
    step = median(took[1:] or took)
    work = mean(worked[1:] or worked) if next(job.network.parameters()).device.type == "cpu" else 0.0
    return Trial(per_step / step, step, per_step, job.batches.tokens, job.objective.carries, work)


def threads_worth_trying() -> int:
    """Return the number of processors if a small product is faster with that many threads now, else 1.

    Threads wait for each other; if another program uses a processor, they wait for that too, and finding out
    by timing a whole step would take too long.
    """
    import torch

    from nextword.system import threads

    x_DD = torch.ones(_PROBE, _PROBE)
    took: dict[int, list[float]] = {1: [], threads.allowed(): []}
    for _ in range(_PROBES):
        for number, found in took.items():
            with threads.using(number):
                torch.mm(x_DD, x_DD)
                began = time.perf_counter()
                torch.mm(x_DD, x_DD)
                found.append(time.perf_counter() - began)
    mean = {number: sum(found) / len(found) for number, found in took.items()}
    return min(mean, key=lambda number: mean[number])


def _continues(took: list[float], used: float, seconds: float, slowest: float) -> bool:
    if len(took) < 2:
        return not took or took[0] <= slowest
    return len(took) <= _STEPS and used < seconds

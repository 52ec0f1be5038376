"""Ours and a peer's by turns in one process: wall and CPU time, the median of the rounds, and the ratio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Cost:
    """Seconds; CPU of all threads."""

    wall: float
    cpu: float


def cost(work: Callable[[], object]) -> Cost:
    """Of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def by_turns(rounds: int, *works: Callable[[], object]) -> list[list[Cost]]:
    """Each once to warm up, then all in every round."""
    for work in works:
        work()
    found: list[list[Cost]] = [[] for _ in works]
    for _ in range(rounds):
        for place, work in enumerate(works):
            found[place].append(cost(work))
    return found


def median(costs: list[Cost], what: str) -> float:
    """Of "wall" or "cpu"."""
    return statistics.median(getattr(each, what) for each in costs)


def report(name: str, ours: list[Cost], theirs: list[Cost], peer: str, units: float, unit: str) -> None:
    """One line: how much a second, and how many times as fast we are."""
    wall, cpu = (median(theirs, what) / median(ours, what) for what in ("wall", "cpu"))
    print(
        f"{name:34s} ours {units / median(ours, 'wall'):9,.0f} {unit}/s | {peer} "
        f"{units / median(theirs, 'wall'):9,.0f} {unit}/s | ratio {wall:.2f}x wall, {cpu:.2f}x CPU",
        flush=True,
    )

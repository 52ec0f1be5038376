"""How fast a training goes, what is left of it, and when its minutes are over."""

from __future__ import annotations

import math
import sys
import time

from nextword.train.budget import Clock
from nextword.train.neural.plan import Plan

_FIRST_GUESS = 10_000  # steps, until the first ones have shown how long they take
_EVERY = 0.02  # the plan is looked at each time this share of the minutes is over
_WORTH = 0.02  # a plan that is wrong by less is left alone
_SHOWN = 0.25  # seconds between two events of the same kind


class Pace:
    """Seconds per step since this sitting began, measurements of the held-out text included."""

    def __init__(self, clock: Clock, step: int) -> None:
        self.clock = clock
        self._began, self._first = clock.used(), step
        self._looked, self._shown = step, -math.inf

    def per_step(self, step: int) -> float:
        """Seconds an update takes; 0 before the first."""
        return (self.clock.used() - self._began) / (step - self._first) if step > self._first else 0.0

    def left(self, step: int, plan: Plan) -> float | None:
        """Seconds until the end."""
        if step == self._first:
            return None
        expected = (plan.steps - step) * self.per_step(step)
        return max(0.0, min(expected, self.clock.left()) if self.clock.is_limited else expected)

    def is_over(self, step: int) -> bool:
        """Another step would not end in time."""
        return self.clock.is_limited and not self.clock.has(self.per_step(step))

    def revise(self, step: int, plan: Plan, most: int) -> None:
        """Fit the plan to the minutes: often at first, then now and then; at most ``most`` steps (0: any)."""
        if not self.clock.is_limited or not self._is_time(step):
            return
        self._looked = step
        expected = step + int(max(0.0, self.clock.left()) / max(self.per_step(step), 1e-9))
        expected = min(expected, most) if most else expected
        if abs(expected - plan.steps) > _WORTH * (plan.steps - step):
            plan.revise(step, expected)

    def is_shown(self) -> bool:
        """Whether it is time to tell something again."""
        now = time.perf_counter()
        if now - self._shown < _SHOWN:
            return False
        self._shown = now
        return True

    def _is_time(self, step: int) -> bool:
        done = step - self._first
        if done < 64:
            return done & (done - 1) == 0
        share = _EVERY * (self.clock.seconds or 0.0)
        return (step - self._looked) * self.per_step(step) >= min(share, 5.0)


def first_plan(steps: int, clock: Clock, most: int) -> Plan:
    """What is known before the first step: ``most`` if it was asked for, else the minutes or the epochs."""
    return Plan.of(most or (_FIRST_GUESS if clock.is_limited else steps))


def peak_memory() -> int:
    """The most bytes this process has had in memory."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

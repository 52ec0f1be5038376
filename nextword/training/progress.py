"""How fast a training goes, what is left of it, and when its minutes are over."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from nextword.training.budget.clock import Clock

_FIRST_GUESS = 10_000  # steps, until the first ones have shown how long they take
_EVERY = 0.02  # the plan is looked at each time this share of the minutes is over
_WORTH = 0.02  # a plan that is wrong by less is left alone
_RECENT = 64  # updates whose pace counts
_MEASURING = 0.05  # of the time goes to measuring the held-out text
_SHOWN = 0.25  # seconds between two events of the same kind


class Pace:
    """Seconds per update, from the last of them; the first one of a sitting is slower and soon forgotten."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._recent: deque[tuple[float, int]] = deque(maxlen=_RECENT)  # seconds and tokens of an update
        self._done, self._looked, self._shown = 0, clock.used(), -math.inf

    def add(self, seconds: float, tokens: int) -> None:
        """An update has taken so long."""
        if self._done == 1:
            self._recent.clear()
        self._done += 1
        self._recent.append((seconds, tokens))

    @property
    def per_step(self) -> float:
        """Seconds an update takes; 0 before the first."""
        return sum(seconds for seconds, _ in self._recent) / max(1, len(self._recent))

    @property
    def tokens_per_second(self) -> float:
        """Words learned from, without the time for measuring."""
        seconds = sum(seconds for seconds, _ in self._recent)
        return sum(tokens for _, tokens in self._recent) / max(seconds, 1e-9)

    def left(self, step: int, plan: Plan) -> float | None:
        """Seconds until the end."""
        if not self._recent:
            return None
        expected = (plan.steps - step) * self.per_step
        return max(0.0, min(expected, self.clock.left()) if self.clock.is_limited else expected)

    def is_over(self) -> bool:
        """Another step would not end in time."""
        return self.clock.is_limited and not self.clock.has(self.per_step)

    def revise(self, step: int, plan: Plan, most: int) -> None:
        """Fit the plan to the minutes: often at first, then now and then; at most ``most`` steps (0: any)."""
        if not self.clock.is_limited or not self._is_time():
            return
        self._looked = self.clock.used()
        seconds = (1 - _MEASURING) * max(0.0, self.clock.left())
        expected = step + int(seconds / max(self.per_step, 1e-9))
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

    def _is_time(self) -> bool:
        if self._done < 64:
            return self._done >= 2 and self._done & (self._done - 1) == 0
        return self.clock.used() - self._looked >= min(_EVERY * (self.clock.seconds or 0.0), 5.0)


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


@dataclass
class Plan:
    """``revisions``: from which step on how many steps in all were expected."""

    revisions: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, steps: int) -> Plan:
        """A plan of so many steps."""
        return cls([(0, max(1, steps))])

    @property
    def steps(self) -> int:
        """Steps expected in all."""
        return self.revisions[-1][1]

    def revise(self, step: int, steps: int) -> None:
        """After ``step`` updates: so many in all are expected now."""
        steps = max(steps, step)
        if steps != self.steps:
            if self.revisions[-1][0] == step:
                self.revisions.pop()
            self.revisions.append((step, max(1, steps)))

    def progress(self, step: int) -> float:
        """The share of the training that is over in the middle of this update (the first is 1).

        It never jumps: a revision spreads what was left then over the steps that are left now.
        """
        over, place = 0.0, 0.0
        nexts = [*(float(at) for at, _ in self.revisions[1:]), float("inf")]
        for (_, steps), until in zip(self.revisions, nexts, strict=True):
            end = min(step - 0.5, until)
            if end > place:
                over += (1 - over) * min(1.0, (end - place) / max(steps - place, 1e-9))
                place = end
        return min(1.0, over)

    def to_json(self) -> list[list[int]]:
        """Plain lists."""
        return [list(pair) for pair in self.revisions]

    @classmethod
    def from_json(cls, pairs: Sequence[Sequence[int]]) -> Plan:
        """The way back."""
        return cls([(int(at), int(steps)) for at, steps in pairs])

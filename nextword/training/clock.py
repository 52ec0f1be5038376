"""The time of a command and of its steps: used, left, reserved for the end; and how many steps there will be.

``--minutes`` is the whole command, from the start of the process (imports included) to the saved run. So the
time for the last validation, for writing the weights and for exiting is measured and reserved.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

LEAVING = 0.4  # seconds from the last file written to the end of the process
_SAMPLE = 4_000_000  # bytes written to measure the speed of the disk
_SLACK = 1.3  # reserve this many times the seconds measured
_FIRST_GUESS = 10_000  # steps, until the first few have been timed
_EVERY = 0.02  # the plan is revised each time this share of the minutes has passed
_WORTH = 0.02  # a plan that is off by less is left alone
_RECENT = 64  # newest updates that count
_MEASURING = 0.05  # of the time goes to validation
_SHOWN = 0.25  # seconds between two events of the same kind


class Clock:
    """The time of a command. Without ``seconds`` there is no limit: `left` is infinite.

    ``began`` is a value of ``time.monotonic()``: now, or `process_start` if the command is a whole process.
    """

    def __init__(self, seconds: float | None = None, began: float | None = None) -> None:
        self.seconds = seconds
        self.began = time.monotonic() if began is None else began
        self._reserved: dict[str, float] = {} if seconds is None else {"leave": LEAVING}

    @classmethod
    def minutes(cls, minutes: float | None, began: float | None = None) -> Clock:
        """Make the clock of ``--minutes``."""
        return cls(None if minutes is None else 60.0 * minutes, began)

    @property
    def is_limited(self) -> bool:
        """Return whether there is a limit."""
        return self.seconds is not None

    def used(self) -> float:
        """Return the seconds since the command began."""
        return time.monotonic() - self.began

    def give_back(self, seconds: float) -> None:
        """Count seconds as not used: they went into work that is not this command's alone."""
        self.began += seconds

    def reserved(self) -> float:
        """Return the seconds reserved for the end."""
        return sum(self._reserved.values())

    def reserve(self, name: str, seconds: float) -> None:
        """Reserve time for work at the end: as long as it took the last time, and some more."""
        if self.is_limited:
            self._reserved[name] = _SLACK * seconds

    def release(self, name: str) -> None:
        """Give back reserved time: the work is done, or will not be done."""
        self._reserved.pop(name, None)

    def left(self) -> float:
        """Return the seconds left for work, without the reserved ones; may be negative."""
        return math.inf if self.seconds is None else self.seconds - self.used() - self.reserved()

    def has_time_for(self, seconds: float) -> bool:
        """Return whether work of this many seconds still fits."""
        return self.left() >= seconds

    def share(self, since: float) -> float:
        """Return how much of the time from ``since`` (a value of `used`) to the end is over, 0 to 1."""
        if not self.is_limited:
            return 0.0
        done, left = self.used() - since, max(0.0, self.left())
        return min(1.0, max(0.0, done / (done + left))) if done + left > 0 else 1.0

    def part(self, seconds: float) -> Clock:
        """Make a clock for a part of the work: at most this many seconds, never past the end of this one."""
        most = min(seconds, self.left())
        return Clock(None if math.isinf(most) else max(0.0, most))


def saving_seconds(size: int, folder: Path | None) -> float:
    """Estimate the seconds to write this many bytes here and read them back, by writing a few of them."""
    sample = os.urandom(min(max(size, 1), _SAMPLE))
    began = time.perf_counter()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(sample)
            file.flush()
            os.fsync(file.fileno())
            file.seek(0)
            file.read()
    except OSError:
        return 0.0  # saving itself will report what is wrong
    took = time.perf_counter() - began
    return took * max(1.0, size / len(sample))


class StepTimer:
    """Times the newest updates; the first one of a process is slower and does not count for long."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._recent: deque[tuple[float, int]] = deque(maxlen=_RECENT)  # seconds and tokens of an update
        self._done, self._looked, self._shown = 0, clock.used(), -math.inf

    def add(self, seconds: float, tokens: int) -> None:
        """Record the seconds and tokens of an update."""
        if self._done == 1:
            self._recent.clear()
        self._done += 1
        self._recent.append((seconds, tokens))

    @property
    def per_step(self) -> float:
        """Return the seconds that an update takes; 0 before the first."""
        return sum(seconds for seconds, _ in self._recent) / max(1, len(self._recent))

    @property
    def tokens_per_second(self) -> float:
        """Return the training speed, without the time for validation."""
        seconds = sum(seconds for seconds, _ in self._recent)
        return sum(tokens for _, tokens in self._recent) / max(seconds, 1e-9)

    def left(self, step: int, plan: Plan) -> float | None:
        """Return the seconds until the end, if they can be estimated."""
        if not self._recent:
            return None
        expected = (plan.steps - step) * self.per_step
        return max(0.0, min(expected, self.clock.left()) if self.clock.is_limited else expected)

    def is_over(self) -> bool:
        """Return whether another step would not finish in time."""
        return self.clock.is_limited and not self.clock.has_time_for(self.per_step)

    def revise(self, step: int, plan: Plan, most: int) -> None:
        """Fit the plan to the minutes, often at first, then rarely; at most ``most`` steps (0: no limit)."""
        if not self.clock.is_limited or not self._is_time():
            return
        self._looked = self.clock.used()
        seconds = (1 - _MEASURING) * max(0.0, self.clock.left())
        expected = step + int(seconds / max(self.per_step, 1e-9))
        expected = min(expected, most) if most else expected
        if abs(expected - plan.steps) > _WORTH * (plan.steps - step):
            plan.revise(step, expected)

    def should_show(self) -> bool:
        """Return whether it is time to show progress again."""
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
    """Make the plan before the first step: ``most`` steps if set, else by the minutes or the epochs."""
    return Plan.of(most or (_FIRST_GUESS if clock.is_limited else steps))


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@dataclass
class Plan:
    """The expected number of steps; ``revisions``: pairs (from this step on, steps expected in total)."""

    revisions: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, steps: int) -> Plan:
        """Make a plan of this many steps."""
        return cls([(0, max(1, steps))])

    @property
    def steps(self) -> int:
        """Return the steps expected in total."""
        return self.revisions[-1][1]

    def revise(self, step: int, steps: int) -> None:
        """Expect this many steps in total, as known after ``step`` updates."""
        steps = max(steps, step)
        if steps != self.steps:
            if self.revisions[-1][0] == step:
                self.revisions.pop()
            self.revisions.append((step, max(1, steps)))

    def progress(self, step: int) -> float:
        """Return the share of training done in the middle of this update (the first is 1).

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
        """Return the revisions as plain lists."""
        return [list(pair) for pair in self.revisions]

    @classmethod
    def from_json(cls, pairs: Sequence[Sequence[int]]) -> Plan:
        """Undo `to_json`."""
        return cls([(int(at), int(steps)) for at, steps in pairs])

"""The time of a command: what is used, what is left, and what is reserved for the end.

``--minutes`` is the whole command, from the start of the process (imports included) to the saved run. So the
time for the last validation, for writing the weights and for exiting is measured and reserved.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from pathlib import Path

LEAVING = 0.4  # seconds from the last file written to the end of the process
_SAMPLE = 4_000_000  # bytes written to measure the speed of the disk
_SLACK = 1.3  # reserve this many times the seconds measured


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

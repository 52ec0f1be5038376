"""The minutes a command has: what is used, what is left, and what must be kept back for the end.

``--minutes`` is the whole command, from the start of the process (imports included) to the saved run. So the
time for the last validation, for writing the weights and for leaving is measured and kept back.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from pathlib import Path

LEAVING = 0.4  # seconds from the last file in place to the end of the process
_SAMPLE = 4_000_000  # bytes written to see how fast the disk is
_SLACK = 1.3  # what was measured is allowed to take this much longer next time


class Clock:
    """One command's time. Without ``seconds`` there is no limit: `left` is infinite.

    ``began`` is a moment of ``time.monotonic()``: now, or `process_start` for a command of its own.
    """

    def __init__(self, seconds: float | None = None, began: float | None = None) -> None:
        self.seconds = seconds
        self.began = time.monotonic() if began is None else began
        self._kept: dict[str, float] = {} if seconds is None else {"leave": LEAVING}

    @classmethod
    def minutes(cls, minutes: float | None, began: float | None = None) -> Clock:
        """The clock of ``--minutes``."""
        return cls(None if minutes is None else 60.0 * minutes, began)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.seconds is not None

    def used(self) -> float:
        """Seconds since the command began."""
        return time.monotonic() - self.began

    def kept(self) -> float:
        """Seconds kept back for the end."""
        return sum(self._kept.values())

    def keep(self, name: str, seconds: float) -> None:
        """Keep back time for something at the end: as long as it took the last time, and some more."""
        if self.is_limited:
            self._kept[name] = _SLACK * seconds

    def drop(self, name: str) -> None:
        """It is done, or will not be done: nothing is kept back for it any more."""
        self._kept.pop(name, None)

    def left(self) -> float:
        """Seconds for work that can still be done before the end has to be prepared; may be negative."""
        return math.inf if self.seconds is None else self.seconds - self.used() - self.kept()

    def has(self, seconds: float) -> bool:
        """Whether work of so many seconds still fits."""
        return self.left() >= seconds

    def share(self, since: float) -> float:
        """How much of the time from ``since`` (a value of `used`) to the end of the work is over, 0 to 1."""
        if not self.is_limited:
            return 0.0
        done, left = self.used() - since, max(0.0, self.left())
        return min(1.0, max(0.0, done / (done + left))) if done + left > 0 else 1.0

    def part(self, seconds: float) -> Clock:
        """A clock for a piece of the work: at most so many seconds, and never past this one's end."""
        most = min(seconds, self.left())
        return Clock(None if math.isinf(most) else max(0.0, most))


def saving_seconds(size: int, folder: Path | None) -> float:
    """How long it takes to write so many bytes here and to read them again, from writing a few of them."""
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
        return 0.0  # the saving itself will say what is wrong
    took = time.perf_counter() - began
    return took * max(1.0, size / len(sample))

"""When a training is written down on its way: every so many steps, or by the clock.

By the clock it costs at most a twentieth of the time, and a killed training loses a few minutes. Nothing of
it changes a number: the order of the text and all random numbers depend on the step alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from nextword.core.events import Event
from nextword.training.state import TrainingState

EVERY = 120.0  # seconds
SHARE = 0.05  # of the time, at most


@dataclass(frozen=True)
class SavePoint(Event):
    """The training could be taken up again from here; valid until the next event is asked for."""

    state: TrainingState
    is_last: bool = False  # somebody has stopped it


class Saves:
    """Counts the steps, or watches the clock."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.wanted: float = False  # by the clock, after the step that is being made
        self._last, self._cost = time.monotonic(), 0.0

    def is_due(self, step: int) -> bool:
        """Whether the state after this step should be written."""
        return step % self.every == 0 if self.every else bool(self.wanted)

    def is_time(self) -> bool:
        """Whether the last one is long ago."""
        return time.monotonic() - self._last >= max(EVERY, self._cost / SHARE)

    def point(self, state: TrainingState, is_last: bool = False) -> Iterator[Event]:
        """Hand out the state; how long that takes decides when it is done next."""
        began = time.monotonic()
        yield SavePoint(state, is_last)
        self._last = time.monotonic()
        self._cost = self._last - began

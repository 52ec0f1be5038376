"""Which run of how many is being made, and the time left for all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from nextword.comparison.entries import Entry

_AFTER = 8.0  # seconds to measure a network, until one was measured
_COUNTED = 5.0  # of a count model, until one was made


class Planned(Protocol):
    """The runs of a comparison, and the minutes of each network."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return every run, in its order."""
        ...

    @property
    def minutes(self) -> float | None:
        """Return the minutes for each network."""
        ...


class RunPace:
    """Estimates the runs to come from earlier ones of their kind."""

    def __init__(self, setup: Planned) -> None:
        self._todo = list(setup.entries)
        self._all = len(setup.entries)
        self._minutes = setup.minutes
        self._took: dict[str, list[float]] = {}

    def skip(self, entry: Entry) -> None:
        """Skip one that is already finished."""
        self._todo.remove(entry)

    @contextmanager
    def running(self, entry: Entry) -> Iterator[None]:
        """Time one that is made now."""
        began = time.perf_counter()
        yield
        self._took.setdefault(_kind(entry), []).append(time.perf_counter() - began)
        self._todo.remove(entry)

    def left(self) -> float | None:
        """Return seconds for all runs to come; None where nothing is known of a kind."""
        expected = [self._expected(entry) for entry in self._todo]
        return None if None in expected else sum(each for each in expected if each is not None)

    def line(self, entry: Entry) -> str:
        """Write a line such as: 2 of 7: lstm, 0.5 minutes; about 4 minutes left in all."""
        minutes = f", {self._minutes:g} minutes" if entry.is_neural and self._minutes is not None else ""
        left = self.left()
        place = self._all - len(self._todo) + 1
        summary = "" if left is None else f"; {_about(left)} left in all"
        return f"{place} of {self._all}: {entry.label}{minutes}{summary}"

    def _expected(self, entry: Entry) -> float | None:
        took = self._took.get(_kind(entry))
        if took:
            return sum(took) / len(took)
        if not entry.is_neural:
            return _COUNTED
        return None if self._minutes is None else 60 * self._minutes + _AFTER


def _kind(entry: Entry) -> str:
    return "network" if entry.is_neural else "mixture" if entry.is_mixture else "counts"


def _about(seconds: float) -> str:
    if seconds < 50:
        return f"about {max(5, round(seconds / 5) * 5)} s"
    minutes = round(seconds / 60)
    return f"about {minutes} minute{'' if minutes == 1 else 's'}"

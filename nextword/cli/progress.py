"""Events on the terminal: a bar with the time left for each stage, on standard error.

Training shows beside it how it goes: loss, held-out bits per byte, tokens a second, gradient norm, memory.
Where standard error is no terminal there are plain lines: notes, and one for each look at the held-out text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nextword.cli import show
from nextword.core.events import Done, Event, Note, Progress, Stage, Step, Valid
from nextword.core.printable import printable
from nextword.core.sizes import show_size

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

_QUIET = 30.0  # seconds of training without a line, at most


def follow(events: Iterable[Event]) -> Any:
    """Show what happens until the end; returns what was made."""
    return _with_bars(events) if sys.stderr.isatty() else _plain(events)


def _plain(events: Iterable[Event]) -> Any:
    made, told = None, Told()
    for event in events:
        if isinstance(event, Note):
            show.note(event.message)
        elif isinstance(event, (Step, Valid)):
            if told.add(event):
                show.note(told.line())
        elif isinstance(event, Done):
            made = event.result
    return made


class Told:
    """The newest that is known of a training, in words."""

    def __init__(self) -> None:
        self.step: Step | None = None
        self.valid: Valid | None = None
        self._at = 0.0

    def add(self, event: Step | Valid) -> bool:
        """Whether it is time for a line: at each validation, and when there was none for long."""
        is_due = isinstance(event, Valid) or event.seconds - self._at >= _QUIET
        if isinstance(event, Valid):
            self.valid = event
        else:
            self.step = event
        if is_due:
            self._at = event.seconds
        return is_due

    def details(self) -> str:
        """Everything but step and time."""
        parts = [f"loss {self.step.loss:.3f}"] if self.step is not None else []
        if self.valid is not None:
            parts.append(f"held out {self.valid.shown}{'' if self.valid.best else ' (not the best)'}")
        if self.step is not None:
            parts += [f"{self.step.tokens_per_second:,.0f} tokens/s", f"norm {self.step.norm:.2g}"]
            parts.append(show_size(self.step.memory))
        return ", ".join(parts)

    def line(self) -> str:
        """One line that says it all."""
        newest = self.valid if self.step is None else self.step
        step = 0 if newest is None else newest.step
        of = f" of {self.step.steps:,}" if self.step is not None and self.step.steps else ""
        left = None if self.step is None else self.step.seconds_left
        time = f", {_time(left)} left" if left is not None else ""
        return f"step {step:,}{of}: {self.details()}{time}"


def _time(seconds: float) -> str:
    """As in 1:02:03, or 0:07."""
    whole = max(0, round(seconds))
    hours = f"{whole // 3600}:" if whole >= 3600 else ""
    minutes = whole // 60 % 60
    return f"{hours}{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def _with_bars(events: Iterable[Event]) -> Any:
    made, current, told = None, None, Told()
    with _bars() as bars:
        for event in events:
            if isinstance(event, Stage):
                _close(bars, current)
                current, told = bars.add_task(printable(event.name), total=event.total, details=""), Told()
            elif isinstance(event, Progress) and current is not None:
                bars.update(current, completed=event.done)
            elif isinstance(event, (Step, Valid)):
                current = bars.add_task("train", total=None, details="") if current is None else current
                told.add(event)
                _advance(bars, current, told)
            elif isinstance(event, Note):
                bars.console.print(printable(event.message), markup=False, highlight=False)
            elif isinstance(event, Done):
                made = event.result
        _close(bars, current)
    return made


def _advance(bars: Bars, task: Any, told: Told) -> None:
    """The bar of a training: by its time where that is known, else by its steps."""
    step, details = told.step, told.details()
    if step is not None and step.seconds_left is not None:
        bars.update(task, total=step.seconds + step.seconds_left, completed=step.seconds, details=details)
    elif step is not None:
        bars.update(task, total=step.steps, completed=step.step, details=details)


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[details]}", markup=False),
        console=Console(stderr=True),
    )


def _close(bars: Bars, task: Any) -> None:
    if task is not None:
        total = bars.tasks[task].total
        bars.update(task, total=total or 1, completed=total or 1)

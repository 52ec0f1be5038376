"""Printing: results on standard output, notes and progress on standard error, one JSON object on request.

Events on a terminal are a bar with the time left for each stage. Training also shows loss, held-out bits per
byte, tokens per second, gradient norm and memory. Elsewhere there are plain lines: notes, and one line per
measurement of the held-out text.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nextword.core.display import printable, show_size
from nextword.core.events import Event, Note, Progress, Stage, Step, Valid, result_of

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

_QUIET = 30.0  # seconds of training without a line, at most
_NARROWEST = 24  # characters of a column that is folded


class ReaderGone(Exception):  # noqa: N818 - not an error of the program
    """The reader of our output has closed the pipe, as after ``| head``."""


@contextmanager
def to_reader() -> Iterator[None]:
    """Turn a broken pipe into our own exception, before the parser turns it into an exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error


def result(text: str) -> None:
    """Print one result for people; control characters are escaped."""
    with to_reader():
        sys.stdout.write(printable(text) + "\n")


def note(text: str) -> None:
    """Print one sentence on standard error."""
    sys.stderr.write(printable(text) + "\n")


def next_command(command: str) -> None:
    """Print the command that one would naturally run next."""
    note(f"next: {command}")


def as_json(value: Any) -> None:
    """Print one JSON value on one line; infinity and NaN become null."""
    with to_reader():
        sys.stdout.write(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False) + "\n")


def table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows under one heading, columns as wide as their widest cell; numbers are right-aligned.

    On a terminal a last column of text is folded where lines would be wider.
    """
    if not rows:
        return
    columns = list(rows[0])
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    right = [all(isinstance(row.get(column), (int, float, type(None))) for row in rows) for column in columns]
    widths = [max(len(line[i]) for line in [columns, *cells]) for i in range(len(columns))]
    before = sum(width + 2 for width in widths[:-1])
    room = widths[-1] if right[-1] else _room(before, widths[-1])
    for line in [columns, *cells]:
        padded = (
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line[:-1], widths, right, strict=False)
        )
        folded = textwrap.wrap(line[-1], room, break_on_hyphens=False) or [""]
        last = [line[-1].rjust(room)] if right[-1] else folded
        result("  ".join([*padded, last[0]]).rstrip())
        for rest in last[1:]:
            result(" " * before + rest)


def _room(before: int, width: int) -> int:
    """Return how wide the last column is: as wide as its text, or what a terminal leaves of a line."""
    if not sys.stdout.isatty():
        return max(1, width)
    left = shutil.get_terminal_size().columns - before
    return max(1, width if left < _NARROWEST else min(width, left))


def figures(values: Mapping[str, Any]) -> None:
    """Print names and values, one per line."""
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        shown = ", ".join(map(_cell, value)) if isinstance(value, (list, tuple)) else _cell(value)
        result(f"{name.replace('_', ' '):<{width}}  {shown}")


def pieces(texts: Iterable[str]) -> None:
    """Print text as it comes, without waiting for the end of a line."""
    for text in texts:
        with to_reader():
            sys.stdout.write(printable(text))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return (
            f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}" if math.isfinite(value) else str(value)
        )
    return printable(str(value)).replace("\n", "\\n").replace("\t", "\\t")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def follow(events: Iterable[Event]) -> Any:
    """Run events to the end while showing them; returns what was made.

    Ctrl-C while an event is being shown goes to whoever yields them, who knows what was kept.
    """
    try:
        return _with_bars(events) if sys.stderr.isatty() else _plain(events)
    except KeyboardInterrupt as stop:
        if isinstance(events, Generator):
            events.throw(stop)
        raise


def _plain(events: Iterable[Event]) -> Any:
    status = Status()

    def watch(event: Event) -> None:
        if isinstance(event, Note):
            note(event.message)
        elif isinstance(event, (Step, Valid)) and status.add(event):
            note(status.line())

    return result_of(events, watch)


class Status:
    """The latest numbers of a training run, as text."""

    def __init__(self) -> None:
        self.step: Step | None = None
        self.valid: Valid | None = None
        self._at = 0.0

    def add(self, event: Step | Valid) -> bool:
        """Keep the event; True if a line is due: at each validation, and after a long silence."""
        is_due = isinstance(event, Valid) or event.seconds - self._at >= _QUIET
        if isinstance(event, Valid):
            self.valid = event
        else:
            self.step = event
        if is_due:
            self._at = event.seconds
        return is_due

    def details(self) -> str:
        """Show everything but step and time."""
        parts = []
        if self.step is not None:
            parts.append(f"loss {self.step.loss:.3f} nats per {self.step.unit.removesuffix('s')}")
        if self.valid is not None:
            parts.append(f"held out {_quality(self.valid)}{'' if self.valid.best else ' (not the best)'}")
        if self.step is not None:
            parts += [f"{self.step.tokens_per_second:,.0f} {self.step.unit}/s", f"norm {self.step.norm:.2g}"]
            parts.append(show_size(self.step.memory))
        return ", ".join(parts)

    def line(self) -> str:
        """Show step, details and time left on one line."""
        newest = self.valid if self.step is None else self.step
        step = 0 if newest is None else newest.step
        of = f" of {self.step.steps:,}" if self.step is not None and self.step.steps else ""
        left = None if self.step is None else self.step.seconds_left
        time = f", {_time(left)} left" if left is not None else ""
        return f"step {step:,}{of}: {self.details()}{time}"


def _quality(valid: Valid) -> str:
    """Show bits per byte alone, so that a line has one unit besides the loss; else what the task says."""
    bits = valid.values.get("bits_per_byte")
    return valid.shown if bits is None else f"{bits:.4f} bits per byte"


def _time(seconds: float) -> str:
    """Format seconds, as in 1:02:03 or 0:07."""
    whole = max(0, round(seconds))
    hours = f"{whole // 3600}:" if whole >= 3600 else ""
    minutes = whole // 60 % 60
    return f"{hours}{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def _with_bars(events: Iterable[Event]) -> Any:
    with _bars() as bars:
        screen = Screen(bars)
        made = result_of(events, screen.watch)
        screen.close()
    return made


class Screen:
    """One bar per stage, with the numbers of a training run beside it."""

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.task: Any = None
        self.status = Status()

    def watch(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, Stage):
            self.close()
            self.task = self.bars.add_task(printable(event.name), total=event.total, details="")
            self.status = Status()
        elif isinstance(event, Progress) and self.task is not None:
            self.bars.update(self.task, completed=event.done)
        elif isinstance(event, (Step, Valid)):
            if self.task is None:
                self.task = self.bars.add_task("train", total=None, details="")
            self.status.add(event)
            self._advance()
        elif isinstance(event, Note):
            self.bars.console.print(printable(event.message), markup=False, highlight=False)

    def close(self) -> None:
        """Fill the bar of the current stage."""
        if self.task is not None:
            total = self.bars.tasks[self.task].total
            self.bars.update(self.task, total=total or 1, completed=total or 1)

    def _advance(self) -> None:
        """Move the bar of a training run: by its time if that is known, otherwise by its steps."""
        step, details = self.status.step, self.status.details()
        if step is not None and step.seconds_left is not None:
            total = step.seconds + step.seconds_left
            self.bars.update(self.task, total=total, completed=step.seconds, details=details)
        elif step is not None:
            self.bars.update(self.task, total=step.steps, completed=step.step, details=details)


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

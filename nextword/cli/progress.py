"""Events on the terminal: a bar with the time left for each stage, on standard error.

Where standard error is no terminal, only notes are printed, as plain lines.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nextword.cli import show
from nextword.core.events import Done, Event, Note, Progress, Stage
from nextword.core.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bars


def follow(events: Iterable[Event]) -> Any:
    """Show what happens until the end; returns what was made."""
    return _with_bars(events) if sys.stderr.isatty() else _plain(events)


def _plain(events: Iterable[Event]) -> Any:
    made = None
    for event in events:
        if isinstance(event, Note):
            show.note(event.message)
        elif isinstance(event, Done):
            made = event.result
    return made


def _with_bars(events: Iterable[Event]) -> Any:
    made, current = None, None
    with _bars() as bars:
        for event in events:
            if isinstance(event, Stage):
                _close(bars, current)
                current = bars.add_task(printable(event.name), total=event.total)
            elif isinstance(event, Progress) and current is not None:
                bars.update(current, completed=event.done)
            elif isinstance(event, Note):
                bars.console.print(printable(event.message), markup=False, highlight=False)
            elif isinstance(event, Done):
                made = event.result
        _close(bars, current)
    return made


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _close(bars: Bars, task: Any) -> None:
    if task is not None:
        total = bars.tasks[task].total
        bars.update(task, total=total or 1, completed=total or 1)

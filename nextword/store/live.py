"""What a training run reports while it is running, in a file that whoever watches can read.

It stands in the hidden folder in which the new run is written, one JSON object a line: rows of
``metrics.jsonl`` as they are made, and the latest step with the time left. A complete run has it no more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from nextword.core.events import Done, Event, Measure, Step, Valid
from nextword.store.replace import is_locked
from nextword.store.writing import NewRun

LIVE = "live.jsonl"
_NEW = re.compile(r"\.(.+)\.new-\d+-[0-9a-f]{16}")
_MOST = 64 << 20  # bytes that are read


@dataclass(frozen=True)
class Running:
    """A training run that is under way: its folder, its rows so far, and its last step."""

    target: Path
    folder: Path  # the hidden one
    rows: list[dict[str, Any]] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)  # step, steps, seconds, seconds_left


def reported(events: Iterable[Event], run: NewRun) -> Iterator[Event]:
    """Pass on the events of a training run, and write down what is worth watching."""
    path, file = run.path / LIVE, None
    try:
        for event in events:
            row = _row(event)
            if row is not None:
                with suppress(OSError):  # a full disk stops nobody from training
                    file = file or open(path, "a", encoding="utf-8")  # noqa: SIM115 - closed below
                    _append(file, row)
            if isinstance(event, Done):
                _remove(file, path)
            yield event
    finally:
        _remove(file, path)


def running(folder: Path) -> list[Running]:
    """Return the training runs that are under way in a folder, sorted by name."""
    try:
        hidden = [(match[1], path) for path in folder.iterdir() if (match := _NEW.fullmatch(path.name))]
    except OSError:
        return []
    return [_read(folder / name, path) for name, path in sorted(hidden) if is_locked(folder / name)]


def _row(event: Event) -> dict[str, Any] | None:
    if isinstance(event, Measure):
        return event.values
    if isinstance(event, Step):
        return {"now": {"step": event.step, "steps": event.steps, "seconds": event.seconds,
                        "tokens": event.tokens, "seconds_left": event.seconds_left}}  # fmt: skip
    if isinstance(event, Valid):
        return {"now": {"shown": event.shown}}
    return None


def _append(file: IO[str], row: dict[str, Any]) -> None:
    file.write(json.dumps(row) + "\n")
    file.flush()


def _remove(file: IO[str] | None, path: Path) -> None:
    with suppress(OSError):
        if file is not None:
            file.close()
        path.unlink()


def _read(target: Path, folder: Path) -> Running:
    """Read what is there; the last line may be half written."""
    found = Running(target, folder)
    with suppress(OSError), open(folder / LIVE, "rb") as file:
        for line in file.read(_MOST).split(b"\n"):
            with suppress(ValueError, RecursionError):
                row = json.loads(line)
                if isinstance(row, dict) and isinstance(row.get("now"), dict):
                    found.last.update(row["now"])
                elif isinstance(row, dict):
                    found.rows.append(row)
    return found

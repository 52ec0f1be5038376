"""Events of a long-running operation: yielded, never called back.

The terminal, the report and the web page consume the same events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nextword.core.spelling import for_python

Rows = list[dict[str, Any]]  # of ``metrics.jsonl``
_log = logging.getLogger("nextword")


@dataclass(frozen=True)
class Event:
    """Anything that happened."""


@dataclass(frozen=True)
class Stage(Event):
    """A named stage begins, as lmplz announces its five steps."""

    name: str
    total: int | None = None  # in `unit`, if known in advance
    unit: str = ""


@dataclass(frozen=True)
class Progress(Event):
    """Part of the current stage is done."""

    done: int


@dataclass(frozen=True)
class Note(Event):
    """A sentence the user should read; the operation continues."""

    message: str


@dataclass(frozen=True)
class Measure(Event):
    """Numbers for ``metrics.jsonl``."""

    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step(Event):
    """One update of the weights; values not known yet are None."""

    step: int  # updates so far
    steps: int | None  # expected in total
    seconds: float  # since the command began
    seconds_left: float | None
    tokens: int  # predictions trained on so far
    loss: float  # nats per token in this batch
    rate: float  # the learning rate
    norm: float  # of the gradient, before clipping
    tokens_per_second: float
    memory: int  # peak resident bytes
    parts: Mapping[str, float] = field(default_factory=dict)  # of the loss, by name
    unit: str = "tokens"  # what is predicted, in the plural


@dataclass(frozen=True)
class Valid(Event):
    """The held-out examples were measured."""

    step: int
    seconds: float
    tokens: int
    values: Mapping[str, float | None]  # what was measured, by name
    shown: str  # the same, as people read it
    best: bool  # the best so far, so its weights are kept


@dataclass(frozen=True)
class Done(Event):
    """The last event; holds the result."""

    result: Any = None


def result_of(events: Iterable[Event], watch: Callable[[Event], None] | None = None) -> Any:
    """Run events to the end and return what was made; ``watch`` is called with every event but the last.

    None where nothing was made: the events ended without `Done`.
    """
    made = None
    for event in events:
        if isinstance(event, Done):
            made = event.result
        elif watch is not None:
            watch(event)
    return made


def finish(events: Iterable[Event]) -> Any:
    """Run events to the end and return what was made; notes go to the log ``nextword``."""
    return result_of(events, _log_note)


def _log_note(event: Event) -> None:
    if isinstance(event, Note):
        _log.warning(for_python(event.message))


def returned(events: Generator[Event, None, Any]) -> Any:
    """Run a generator whose events nobody watches; returns what it returns."""
    while True:
        try:
            next(events)
        except StopIteration as end:
            return end.value


def recorded(events: Iterable[Event], rows: Rows) -> Generator[Event, None, Any]:
    """Pass on all but the last event; numbers are kept, and the result is returned."""
    made: Any = None
    for event in events:
        if isinstance(event, Done):
            made = event.result
            continue
        if isinstance(event, Measure):
            rows.append(event.values)
        yield event
    assert made is not None, "the last event is Done(something)"
    return made


def kept(events: Generator[Event, None, Any], rows: Rows) -> Generator[Event, None, Any]:
    """Pass on all events; numbers are kept, and what the generator returns is returned."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            return end.value
        if isinstance(event, Measure):
            rows.append(event.values)
        yield event

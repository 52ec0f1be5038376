"""Events run to their end: what was made or returned, what was told on the way, and only one kind of it."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from nextword.core.events import Done, Event, Note


def until_done(events: Iterable[Event]) -> tuple[Any, list[Event]]:
    """Run events that end with `Done`; gives its result and the events before."""
    *before, done = events
    assert isinstance(done, Done)
    return done.result, before


def result_of(events: Iterable[Event]) -> Any:
    """Run events that end with `Done`; gives its result."""
    return until_done(events)[0]


def until_return(events: Generator[Event, None, Any]) -> tuple[Any, list[Event]]:
    """Run a generator; gives what it returns and its events."""
    told: list[Event] = []
    while True:
        try:
            told.append(next(events))
        except StopIteration as end:
            return end.value, told


def of_kind(events: Iterable[Event], kind: type) -> list[Any]:
    """Keep the events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def notes_of(events: Iterable[Event]) -> list[str]:
    """Keep what the notes say."""
    return [note.message for note in of_kind(events, Note)]

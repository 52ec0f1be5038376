"""From events to their result, for callers who do not watch."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from nextword.core.events import Done, Event, Note


def finish(events: Iterable[Event]) -> Any:
    """Run to the end; notes become warnings, and what was made is returned."""
    made = None
    for event in events:
        if isinstance(event, Note):
            warnings.warn(event.message, stacklevel=3)
        elif isinstance(event, Done):
            made = event.result
    return made


def quietly(events: Iterable[Event]) -> Any:
    """Run to the end; nobody hears the notes."""
    made = None
    for event in events:
        if isinstance(event, Done):
            made = event.result
    return made

"""From events to their result, for callers who do not watch."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from nextword.core.events import Done, Event, Note

_log = logging.getLogger("nextword")


def finish(events: Iterable[Event]) -> Any:
    """Run to the end; notes go to the log ``nextword``, and what was made is returned."""
    made = None
    for event in events:
        if isinstance(event, Note):
            _log.warning(event.message)
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

"""``eval``: measure a run on files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nextword.api.opened import Name, Opened, opened
from nextword.core import config
from nextword.core.events import Event, finish


def evaluate(
    run: Opened | Name,
    *data: Name,
    dynamic: str | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> Any:
    """Measure a run on files, by its task; ``dynamic`` ("sgd" or "rms"): a network learns from what it read.

    ``set`` takes settings of the groups ``data`` and ``dynamic``, as in ``{"dynamic.rate": 0.1}``.
    """
    return finish(evaluating(run, data, set or {}, dynamic))


def evaluating(
    run: Opened | Name,
    data: Sequence[Name],
    sets: Mapping[str, Any] | Sequence[str] = (),
    dynamic: str | None = None,
) -> Iterator[Event]:
    """Run `evaluate` and yield its progress; the last event holds the report. ``sets``: ``key=value``."""
    given = dict(sets) if isinstance(sets, Mapping) else config.parse_sets(sets)
    if dynamic is not None:
        given["dynamic.rule"] = dynamic
    found = opened(run)
    return found.settings.find_task().evaluate(found.trained, [os.fspath(name) for name in data], given)

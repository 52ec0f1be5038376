"""``eval``: measure a run on files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened, opened
from nextword.core import config
from nextword.core.events import Done, Event, Note, finish
from nextword.evaluation.lm.report import Report


@checked
def evaluate(
    run: Opened | Name,
    *data: Name,
    dynamic: Literal["sgd", "rms"] | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> Any:
    """Measure a run on files, by its task; ``dynamic`` ("sgd" or "rms"): a network learns from what it read.

    ``set`` takes settings of the groups ``data`` and ``dynamic``, as in ``{"dynamic.rate": 0.1}``.

    >>> nextword.evaluate("runs/tiny", "test.txt")
    <Report: ... bits per byte, perplexity ..., 14 tokens, 0.00% unknown>
    """
    return finish(evaluating(run, data, set or {}, dynamic))


def evaluating(
    run: Opened | Name,
    data: Sequence[Name],
    sets: Mapping[str, Any] | Sequence[str] = (),
    dynamic: str | None = None,
    explain: bool = True,
) -> Iterator[Event]:
    """Run `evaluate` and yield its progress; the last event holds the report. ``sets``: ``key=value``.

    ``explain``: what needs care is also a note, for callers that do not show the report.
    """
    given = dict(sets) if isinstance(sets, Mapping) else config.parse_sets(sets)
    if dynamic is not None:
        given["dynamic.rule"] = dynamic
    found = opened(run)
    for event in found.settings.find_task().evaluate(found.trained, [os.fspath(n) for n in data], given):
        report = event.result if isinstance(event, Done) else None
        if explain and isinstance(report, Report) and report.explanation:
            yield Note(report.explanation)
        yield event

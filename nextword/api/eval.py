"""``eval``: measure a run on files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nextword.api.arguments import checked
from nextword.api.beside import Beside, changed
from nextword.api.opened import Name, Opened, opened
from nextword.core import config
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Note, finish, recorded
from nextword.core.task import PagedReport
from nextword.drawing.page import Page, Table
from nextword.evaluation.lm.report import Report
from nextword.evaluation.translation import TranslationReport


@dataclass(frozen=True)
class EvalOptions:
    """How `evaluate` measures and what it writes."""

    dynamic: str | None = None  # the rule of dynamic evaluation
    html: Name | None = None  # a page with pictures is written there
    against: Name | None = None  # another run, compared on the same texts
    precision: str = "fp32"  # of the products of a network; or int8
    explain: bool = True  # what needs care is also a note, for callers that do not show the report


_DEFAULT = EvalOptions()


@checked
def evaluate(
    run: Opened | Name,
    *data: Name,
    dynamic: Literal["sgd", "rms"] | None = None,
    html: Name | None = None,
    against: Name | None = None,
    precision: Literal["fp32", "int8"] = "fp32",
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> Any:
    """Measure a run on files, by its task; ``dynamic`` ("sgd" or "rms"): a network learns from what it read.

    ``html`` writes a page with pictures. ``against``: another run of the task ``translate``, compared on the
    same texts by a paired bootstrap. ``precision="int8"`` shows what its products cost. ``set`` takes
    settings of the groups ``data`` and ``dynamic``, as in ``{"dynamic.rate": 0.1}``.

    >>> nextword.evaluate("runs/tiny", "test.txt")
    <Report: ... bits per byte, perplexity ..., 14 tokens, 0.00% unknown>
    """
    return finish(evaluating(run, data, set or {}, EvalOptions(dynamic, html, against, precision)))


def evaluating(
    run: Opened | Name,
    data: Sequence[Name],
    sets: Mapping[str, Any] | Sequence[str] = (),
    options: EvalOptions = _DEFAULT,
) -> Iterator[Event]:
    """Run `evaluate` and yield its progress; the last event holds the report. ``sets``: ``key=value``."""
    given = dict(sets) if isinstance(sets, Mapping) else config.parse_sets(sets)
    if options.dynamic is not None:
        given["dynamic.rule"] = options.dynamic
    if options.html is not None:
        _check_page(options.html)
    found, notes = changed(opened(run), Beside(precision=options.precision))
    yield from map(Note, notes)
    files = [os.fspath(name) for name in data]
    for event in _measuring(found, files, given, options.against):
        report = event.result if isinstance(event, Done) else None
        if options.explain and isinstance(report, Report) and report.explanation:
            yield Note(report.explanation)
        if report is not None and options.html is not None:
            page = page_of(report)
            page.text(f"Measured: {found.settings.name} on {', '.join(files)}.", soft=True)
            yield Note(f"written: {page.save(options.html)}")
        yield event


def _measuring(
    found: Opened, files: Sequence[str], given: Mapping[str, Any], against: Name | None = None
) -> Iterator[Event]:
    """Measure a run, or two on the same files: then the report of the first says how far they are apart."""
    if against is None:
        yield from found.settings.find_task().evaluate(found.trained, files, given)
        return
    other = opened(against)
    for each in (found, other):
        if each.settings.task != "translate":
            raise ConfigError(
                f"'--against' compares runs of the task 'translate', and one of these has the task "
                f"'{each.settings.task}'; compare other models with: nextword compare"
            )
    second: TranslationReport = yield from recorded(_measuring(other, files, given), [])
    first: TranslationReport = yield from recorded(_measuring(found, files, given), [])
    yield Done(first.beside(second))


def _check_page(path: Name) -> None:
    """Raise what can be known before anything is measured."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"'--html' is '{os.fspath(path)}', which is not a page; it must end in .html")


def page_of(report: Any) -> Page:
    """Return the page of a report, or one with its numbers where it has none of its own."""
    if isinstance(report, PagedReport):
        page: Page = report.page()
        return page
    rows = tuple((name, value) for name, value in report.to_json().items() if _is_shown(value))
    made = Page("What was measured")
    made.table(Table(("measure", "value"), rows))
    return made


def _is_shown(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)

"""``filter``: keep the lines of a text that a run finds likely, or unlikely."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import IO, Any, cast

from nextword.api.arguments import checked
from nextword.api.opened import Name, Opened, language_model
from nextword.api.tables import check_output, table_settings
from nextword.core import config
from nextword.core.display import show_size
from nextword.core.errors import ConfigError, DataError
from nextword.core.events import Event, Note, result_of
from nextword.core.settings import Settings
from nextword.data.paths import resolve
from nextword.data.rows import open_table
from nextword.data.settings import DataSettings
from nextword.evaluation.lines.filter import Filtered, FilterSettings, Scorer, filter_lines
from nextword.evaluation.lines.records import filter_records
from nextword.evaluation.lines.scores import NO_END


@checked
def filter(  # noqa: A001 - the verb's name
    run: Opened | Name,
    file: Name,
    out: Name,
    *,
    against: Opened | Name | None = None,
    keep: str = "best",
    add_score: bool = False,
    prefix: str = "",
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> Filtered:
    """Copy the lines or rows that the rule keeps; called again after an interruption, it resumes.

    The rows of a table (JSON lines, CSV, TSV, Parquet) are kept whole; ``set={"data.text_column": "body"}``
    names the column with the text. ``keep="buckets"`` keeps all and adds the column ``bucket``.

    >>> nextword.filter("runs/tiny", "test.txt", "kept.txt", keep="head:50").kept
    1
    """
    sets = {"filter.add_score": add_score, "filter.prefix": prefix} | dict(set or {})
    found: Filtered = result_of(
        filtering(run, os.fspath(file), os.fspath(out), against=against, keep=keep, sets=sets)
    )
    return found


def filtering(
    run: Opened | Name,
    file: str,
    out: str | IO[bytes] | None = None,
    *,
    against: Opened | Name | None = None,
    keep: str = "best",
    sets: Mapping[str, Any] | Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
) -> Iterator[Event]:
    """Run `filter` and yield its progress; it writes to a file or a stream (default: standard output)."""
    named = dict(sets) if isinstance(sets, Mapping) else config.parse_sets(sets)
    given = {"filter.keep": keep} | dict(options or {}) | named
    groups: dict[str, type[Settings]] = {"filter": FilterSettings, "data": DataSettings}
    settings = cast(FilterSettings, config.build(groups, given)["filter"])
    first = language_model(run)
    second = None if against is None else language_model(against)
    identity = first.fingerprint + ("" if second is None else second.fingerprint)
    pair = None if second is None else (second.model, second.tokenizer)
    source = resolve([file])
    if len(source) != 1:
        raise DataError(f"filter reads one file at a time, and this matches {len(source)}", file)
    target = _output(source[0].path, sys.stdout.buffer if out is None else out)
    scorer = Scorer(first.model, first.tokenizer, pair, identity)
    if not scorer.end:
        yield Note(NO_END)
    with ExitStack() as stack:
        table = open_table(source[0], table_settings(first, given), stack)
        if table is None:
            yield from filter_lines(scorer, source[0].path, target, settings)
        else:
            check_output(table, target)
            yield from filter_records(scorer, table, target, settings)


def _output(source: str, out: str | IO[bytes]) -> str | IO[bytes]:
    both = isinstance(out, str) and os.path.exists(out) and os.path.exists(source)
    if isinstance(out, str) and both and os.path.samefile(source, out):
        raise ConfigError(f"--out is '{out}', which is also the input; choose another file")
    return out


def describe(done: Filtered) -> str:
    """Say in one sentence what a finished filter did."""
    share = done.kept / done.lines if done.lines else 0.0
    return (
        f"kept {done.kept:,} of {done.lines:,} lines ({share:.1%}), {show_size(done.kept_bytes)}, "
        f"in {done.seconds:.1f} s ({show_size(done.bytes / max(done.seconds, 1e-9))}/s)"
    )


def figures(done: Filtered) -> dict[str, Any]:
    """Collect everything `--json` prints."""
    return asdict(done)

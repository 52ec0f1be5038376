"""``data``: list, copy and check texts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from nextword.api.arguments import checked
from nextword.core import config
from nextword.core.catalog import find
from nextword.core.events import Event, result_of
from nextword.core.spelling import for_python
from nextword.data import check
from nextword.data.corpora import get_corpus, list_corpora
from nextword.data.recipes.recipe import Part, divide, pairs_of, write_pairs
from nextword.data.report import CheckReport
from nextword.data.settings import DataSettings


def listed() -> list[dict[str, Any]]:
    """List every corpus that can be named on this machine."""
    return [
        {
            "name": corpus.name,
            "files": corpus.files,
            "bytes": corpus.bytes,
            "splits": ", ".join(corpus.splits),
            "installed": corpus.folder is not None,
            "about": corpus.about,
        }
        for corpus in list_corpora()
    ]


@checked
def list_data() -> list[str]:
    """List the names of all corpora.

    >>> "sotu" in nextword.list_data()
    True
    """
    return [row["name"] for row in listed()]


def get(name: str, out: str) -> dict[str, Any]:
    """Copy a corpus's files into a folder."""
    files = get_corpus(name, out)
    size = sum(file.stat().st_size for file in files)
    return {"name": name, "path": out, "files": len(files), "bytes": size}


def pairs(
    recipe: str,
    files: Sequence[str],
    out: str,
    test: str | None = None,
    share: float = 0.1,
    part: Part = "spread",
) -> dict[str, Any]:
    """Write files of another shape as source TAB target; ``test`` gets this share of the sources."""
    found = pairs_of(find("recipe", recipe), files)
    rest, held = divide(found, share, part) if test is not None else (found, [])
    made: dict[str, Any] = {"path": out, "pairs": write_pairs(out, rest)}
    return made if test is None else made | {"test": test, "test_pairs": write_pairs(test, held)}


@checked
def check_data(
    *files: str | os.PathLike[str],
    set: Mapping[str, Any] | None = None,  # noqa: A002 - as in `train`
) -> CheckReport:
    """Count lines, words, duplicates, unseen words and encoding problems of a text, with advice.

    >>> nextword.check_data("corpus.txt").lines
    40
    """
    report: CheckReport = result_of(checking([os.fspath(file) for file in files], set or {}))
    return replace(
        report,
        notes=tuple(for_python(each) for each in report.notes),
        problems=tuple(for_python(each) for each in report.problems),
        advice=tuple(for_python(each) for each in report.advice),
    )


def checking(files: Sequence[str], sets: Mapping[str, Any] | Sequence[str] = ()) -> Iterator[Event]:
    """Run `check_data` and yield its progress; the last event holds the report."""
    given = sets if isinstance(sets, Mapping) else config.parse_sets(sets)
    built = config.build({"data": DataSettings}, given)
    yield from check.checking(files, cast(DataSettings, built["data"]))

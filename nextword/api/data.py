"""``data``: list, copy and check texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from nextword.core import config
from nextword.core.events import Event, result_of
from nextword.data import check
from nextword.data.corpora import get_corpus, list_corpora
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


def list_data() -> list[str]:
    """List the names of all corpora."""
    return [row["name"] for row in listed()]


def get(name: str, out: str) -> dict[str, Any]:
    """Copy a corpus's files into a folder."""
    files = get_corpus(name, out)
    size = sum(file.stat().st_size for file in files)
    return {"name": name, "path": out, "files": len(files), "bytes": size}


def check_data(*files: str) -> CheckReport:
    """Count lines, words, duplicates, unseen words and encoding problems of a text, with advice."""
    report: CheckReport = result_of(checking(files))
    return report


def checking(files: Sequence[str], sets: Sequence[str] = ()) -> Iterator[Event]:
    """Run `check_data` and yield its progress; the last event holds the report."""
    built = config.build({"data": DataSettings}, config.parse_sets(sets))
    yield from check.checking(files, cast(DataSettings, built["data"]))

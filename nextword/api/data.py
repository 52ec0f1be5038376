"""``data``: the corpora that can be named, and what is wrong with a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from nextword.api.events import quietly
from nextword.core import config
from nextword.core.events import Event
from nextword.data import check
from nextword.data.corpora import get_corpus, list_corpora
from nextword.data.report import CheckReport
from nextword.data.settings import DataSettings


def listed() -> list[dict[str, Any]]:
    """Every corpus that can be named on this machine."""
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
    """The names of all corpora."""
    return [row["name"] for row in listed()]


def get(name: str, out: str) -> dict[str, Any]:
    """Copy a corpus's files into a folder."""
    files = get_corpus(name, out)
    size = sum(file.stat().st_size for file in files)
    return {"name": name, "path": out, "files": len(files), "bytes": size}


def check_data(*files: str) -> CheckReport:
    """Lines, words, repeats, unseen words and encoding problems of a text, with advice."""
    report: CheckReport = quietly(checking(files))
    return report


def checking(files: Sequence[str], sets: Sequence[str] = ()) -> Iterator[Event]:
    """`check_data` with its progress; the last event holds the report."""
    built = config.build({"data": DataSettings}, config.parse_sets(sets))
    yield from check.checking(files, cast(DataSettings, built["data"]))

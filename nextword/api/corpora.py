"""``data``: the corpora that can be named, and what is wrong with a file."""

from __future__ import annotations

from typing import Any

from nextword.data.corpora import get_corpus, list_corpora


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

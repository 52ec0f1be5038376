"""Texts to be classified: lines, or a column of a table, whether or not it has labels."""

from __future__ import annotations

from collections.abc import Iterator

from nextword.data.labelled import LabelledDataSettings, LabelledText
from nextword.data.lines import read_lines
from nextword.data.paths import STDIN, Source

_TABLES = ("csv", "tsv", "jsonl", "parquet")


def read_file(file: str, settings: LabelledDataSettings) -> Iterator[str]:
    """Yield the texts of a file, in bounded memory: a table by its extension, otherwise one a line."""
    kind = Source(file).format
    if file in STDIN or kind not in _TABLES:
        yield from read_lines(file)
        return
    auto = settings.model_copy(update={"format": "auto"})
    yield from (each.text for each in LabelledText([file], auto, unlabelled=True).stream())

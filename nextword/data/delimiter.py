"""Find what separates the columns of a table: the header and the first rows show it.

A spreadsheet writes ``.csv`` with semicolons where the comma is the decimal sign. Read with commas, such a
table has a single column, and nothing looks wrong.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from nextword.core.errors import DataError

NAMES = {"comma": ",", "semicolon": ";", "tab": "\t"}
_PLURAL = {",": "commas", ";": "semicolons", "\t": "tabs"}
_SAMPLE_LINES, _SAMPLE_LETTERS = 100, 1 << 18


def peek(lines: Iterator[str]) -> tuple[list[str], Iterator[str]]:
    """Return the first lines, and all lines."""
    sample: list[str] = []
    size = 0
    for line in lines:
        sample.append(line)
        size += len(line)
        if len(sample) >= _SAMPLE_LINES or size >= _SAMPLE_LETTERS:
            break
    return sample, chain(sample, lines)


def find_delimiter(sample: Sequence[str], usual: str, wanted: Sequence[str], shown: str) -> str:
    """Return what separates the columns; ``usual`` unless the header or all first rows say otherwise.

    ``wanted``: the columns that the header should name, where that is known.
    """
    marks = dict.fromkeys((usual, *NAMES.values()))
    rows = {mark: _rows(sample, mark, quotes=not usual == mark == "\t") for mark in marks}
    named = [mark for mark, found in rows.items() if found and _names(found[0], wanted)]
    if named:
        return usual if usual in named or len(named) > 1 else named[0]
    even = [mark for mark, found in rows.items() if len(found) > 1 and _is_even(found)]
    if usual in even or not even:
        return usual
    if len(even) > 1:
        raise DataError(
            f"the columns may be separated by {' or '.join(_PLURAL[mark] for mark in even)}; "
            f"say which with --set data.delimiter={'|'.join(_name(mark) for mark in even)}",
            shown,
            1,
        )
    return even[0]


def describe(delimiter: str, usual: str) -> str:
    """Say which separator was found in place of the usual one."""
    return (
        f"the columns are separated by {_PLURAL[delimiter]}, not {_PLURAL[usual]}; "
        f"--set data.delimiter={_name(usual)} reads them otherwise"
    )


def table_rows(lines: Iterable[str], delimiter: str, quotes: bool, strict: bool = True) -> Any:
    """Read rows; without ``quotes``, as in TSV, a quote is an ordinary character."""
    if quotes:
        return csv.reader(lines, delimiter=delimiter, strict=strict)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=strict)


def _rows(sample: Sequence[str], delimiter: str, quotes: bool) -> list[list[str]]:
    """Return the complete rows of a sample; the last one may be cut."""
    try:
        rows = [row for row in table_rows(sample, delimiter, quotes, strict=False) if row]
    except csv.Error:
        return []
    return rows[:-1] if len(sample) >= _SAMPLE_LINES else rows


def _names(header: Sequence[str], wanted: Sequence[str]) -> bool:
    return len(header) > 1 and bool(wanted) and all(name in header for name in wanted)


def _is_even(rows: Sequence[Sequence[str]]) -> bool:
    return len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)


def _name(delimiter: str) -> str:
    return next(name for name, mark in NAMES.items() if mark == delimiter)

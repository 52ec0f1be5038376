"""The columns of tables and the fields of records, by name or number: what labelled text and pairs share."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from nextword.core.errors import DataError, MissingPart
from nextword.core.suggestions import nearest
from nextword.data.delimiter import table_rows
from nextword.data.json_lines import json_records
from nextword.data.paths import Source
from nextword.data.tables import LINE_LIMIT


class Row(NamedTuple):
    """One row of a table, and the line it begins in."""

    line: int
    cells: list[str]


def read_rows(
    lines: Iterable[str], delimiter: str, usual: str, path: str, ragged: list[Row] | None = None
) -> Iterator[Row]:
    """Yield the rows of CSV or TSV, all as wide as the first; blank ones are left out.

    A row of another width is an error, or is left out and kept in ``ragged``.
    """
    csv.field_size_limit(LINE_LIMIT)
    reader = table_rows(lines, delimiter, quotes=not usual == delimiter == "\t")
    width = before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not cells or (len(cells) == 1 and not cells[0].strip()):
                continue
            width = width or len(cells)
            if len(cells) != width and ragged is not None:
                ragged.append(Row(line, cells))
                continue
            if len(cells) != width:
                raise DataError(
                    f"expected {width} columns as in the first line, found {len(cells)}", path, line
                )
            yield Row(line, cells)
    except csv.Error as error:
        raise DataError(
            f"the table cannot be read here ({error}); check the quotes", path, before + 1
        ) from error


def column_of(setting: str, name: str, header: list[str] | None, width: int, path: str) -> int:
    """Return a column by its name or number."""
    name = name.strip()
    if header is not None and name in header:
        return header.index(name)
    if name.isdigit():
        if not 1 <= int(name) <= width:
            raise DataError(f"'{setting}' is {name}, but there are {width} columns", path)
        return int(name) - 1
    raise DataError(no_field(setting, name, header or []), path, 1)


def no_field(setting: str, name: str, there: list[str]) -> str:
    """Return the message for a column that does not exist."""
    guess = nearest(name, there)
    hint = f"did you mean '{guess}'? There are" if guess else "there are"
    columns = ", ".join(there[:20]) or "none"
    return f"there is no column '{name}'; {hint}: {columns}; choose with --set {setting}=NAME"


def json_objects(lines: Iterable[str], path: str, holds: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the fields of every record; ``holds``: what one should hold, for messages."""
    for number, record in json_records(lines, path):
        if not isinstance(record, dict):
            raise DataError(f"a line must be a JSON object with {holds}", path, number)
        yield number, record


def parquet_records(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the fields of every record of a Parquet file."""
    try:
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise MissingPart("pyarrow", "all", "reading Parquet") from error
    line = 0
    for batch in pq.ParquetFile(source.path).iter_batches():
        for record in batch.to_pylist():
            line += 1
            yield line, record

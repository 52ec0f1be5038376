"""Read records as documents: JSON lines, CSV and TSV.

Every record's text is a document; an unreadable record is reported with its line.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nextword.core.contracts import Block
from nextword.core.errors import DataError
from nextword.core.suggestions import nearest
from nextword.data.delimiter import NAMES, describe, find_delimiter, peek, table_rows
from nextword.data.json_lines import json_records
from nextword.data.paths import Source
from nextword.data.plain import TextChecker, text_blocks
from nextword.data.settings import DataSettings

LINE_LIMIT = 1 << 28  # one record must fit into memory
_JOIN = "\n"  # between the columns of one record


def table_blocks(source: Source, kind: str, settings: DataSettings, checker: TextChecker) -> Iterator[Block]:
    """Yield the texts of a table's records, one block each."""
    lines = lines_of(source, checker)
    if kind == "jsonl":
        records = _json_texts(lines, source, settings, checker)
    else:
        records = _table_texts(lines, source, settings, checker, "\t" if kind == "tsv" else ",")
    found = False
    for line, text in records:
        data = _to_bytes(text, source, line)
        if settings.newlines == "unify" and not checker.raw:
            data = data.replace(b"\r\n", b"\n")
        found = found or bool(data.strip())
        yield Block(data, True, source.shown, line)
    if not found:
        raise DataError("no record of this file contains any text", source.shown)


def lines_of(source: Source, checker: TextChecker) -> Iterator[str]:
    """Yield the lines of a file with their ends; a line may span blocks."""
    waiting: list[str] = []
    size = 0
    for block in text_blocks(source, checker):
        *whole, rest = block.data.decode("utf-8").split("\n")
        for line in whole:
            yield "".join((*waiting, line, "\n"))
            waiting, size = [], 0
        waiting.append(rest)
        size += len(rest)
        if size > LINE_LIMIT:
            raise DataError(f"one line is longer than {LINE_LIMIT >> 20} MB", source.shown, checker.line)
    if size:
        yield "".join(waiting)


def _to_bytes(text: str, source: Source, line: int) -> bytes:
    """Encode a record's text as UTF-8; lone surrogates and NUL, which JSON allows, are errors."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = f"U+{ord(text[error.start]):04X}"
        message = (
            f"the text contains a lone surrogate ({code}), which is not a character; write the whole pair"
        )
        raise DataError(message, source.shown, line) from error
    if b"\0" in data:
        raise DataError("the text contains a NUL character; remove it", source.shown, line)
    return data


def _json_texts(
    lines: Iterable[str], source: Source, settings: DataSettings, checker: TextChecker
) -> Iterator[tuple[int, str]]:
    names = [name.strip() for name in (settings.text_column or "text").split(",")]
    for number, record in json_records(lines, source.shown):
        yield number, record if isinstance(record, str) else _fields(record, names, source, number, checker)


def _fields(record: Any, names: list[str], source: Source, line: int, checker: TextChecker) -> str:
    """Return the text of a JSON record; null stands for an empty text, as in Parquet."""
    if record is None:
        checker.without_text()
        return ""
    if not isinstance(record, dict):
        raise DataError("this line is neither a JSON object nor a string", source.shown, line)
    texts = []
    for name in names:
        if name not in record:
            raise DataError(_no_column("field", name, list(record)), source.shown, line)
        if record[name] is None:
            continue
        if not isinstance(record[name], str):
            kind = type(record[name]).__name__
            raise DataError(f"the field '{name}' is not a string but {kind}", source.shown, line)
        texts.append(record[name])
    if not texts:
        checker.without_text()
    return _JOIN.join(texts)


def _no_column(what: str, name: str, there: list[str]) -> str:
    guess = nearest(name, there)
    hint = f"did you mean '{guess}'? Available" if guess else "available"
    return (
        f"there is no {what} '{name}'; {hint}: {', '.join(there[:20]) or 'none'}. "
        "Choose with --set data.text_column=NAME"
    )


def _table_texts(
    lines: Iterator[str], source: Source, settings: DataSettings, checker: TextChecker, usual: str
) -> Iterator[tuple[int, str]]:
    """Yield the text columns of every row; all rows must have the same length."""
    csv.field_size_limit(LINE_LIMIT)
    delimiter = NAMES.get(settings.delimiter)
    if delimiter is None:
        sample, lines = peek(lines)
        delimiter = find_delimiter(sample, usual, _named_columns(settings), source.shown)
        if delimiter != usual:
            checker.remarks.append(describe(delimiter, usual))
    rows = table_rows(lines, delimiter, quotes=not usual == delimiter == "\t")
    pick: Callable[[list[str]], str] | None = None
    width = before = 0
    try:
        for row in rows:
            line, before = before + 1, rows.line_num
            if not row:
                continue
            if pick is None:
                width = len(row)
                pick, is_header = _columns(row, source, settings)
                if is_header:
                    continue
            if len(row) != width:
                message = f"this row has {len(row)} columns, expected {width} as in the first one"
                raise DataError(message, source.shown, line)
            yield line, pick(row)
    except csv.Error as error:
        raise DataError(
            f"the table cannot be read here ({error}); check the quotes", source.shown, before + 1
        ) from error


def _named_columns(settings: DataSettings) -> list[str]:
    """Return the columns that a header must name; none where there is no header or they are numbers."""
    wanted = [name.strip() for name in settings.text_column.split(",") if name.strip()]
    return [] if settings.columns or any(name.isdigit() for name in wanted) else wanted or ["text"]


def _columns(
    row: list[str], source: Source, settings: DataSettings
) -> tuple[Callable[[list[str]], str], bool]:
    """Return which columns contain the text, and whether the first row is a header."""
    wanted = [name.strip() for name in settings.text_column.split(",") if name.strip()]
    named = [name.strip() for name in settings.columns.split(",") if name.strip()]
    if named and len(named) != len(row):
        message = f"'data.columns' names {len(named)} columns, but the row has {len(row)}"
        raise DataError(message, source.shown, 1)
    header = named or row
    if wanted and all(name.isdigit() for name in wanted) and not named:
        places = [int(name) - 1 for name in wanted]
        if any(not 0 <= place < len(row) for place in places):
            message = f"'data.text_column' is {settings.text_column}, but the row has {len(row)} columns"
            raise DataError(message, source.shown, 1)
        return _picker(places), False
    if not wanted and "text" not in header:
        if len(row) == 1:
            return _picker([0]), False
        message = (
            f"which of the {len(row)} columns contains the text? Use --set data.text_column=NAME (from the "
            f"first row: {', '.join(cell[:20] for cell in row[:8])}) or a number from 1 to {len(row)}"
        )
        raise DataError(message, source.shown, 1)
    for name in wanted or ["text"]:
        if name not in header:
            raise DataError(_no_column("column", name, [cell[:40] for cell in header]), source.shown, 1)
    return _picker([header.index(name) for name in wanted or ["text"]]), not named


def _picker(places: list[int]) -> Callable[[list[str]], str]:
    return lambda row: _JOIN.join(row[place] for place in places)

"""Rows of a table as they stand in the file, each with its text; and the same rows with more columns.

A row that is copied keeps its bytes, and a new column comes last: what other programs wrote stays as it was.
Tables are JSON lines, CSV, TSV and Parquet; `readers` decides what a record is and which column is its text.
"""

from __future__ import annotations

import csv
import json
import math
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any, Protocol

from nextword.core.errors import ConfigError, DataError, MissingPart
from nextword.data.paths import Source, read_bytes
from nextword.data.readers import Reader
from nextword.data.settings import DataSettings

Columns = Mapping[str, type]  # name of a new column -> float, int or str
Values = Mapping[str, Sequence[Any]]  # name of a column -> its value in each row; None: there is none
_TRAILING = re.compile(rb"(\r?\n)(?:[ \t]*\r?\n)*[ \t]*\Z")  # blank lines after a record
_BOM = b"\xef\xbb\xbf"
_ROWS = 4096  # rows of a Parquet table that are read at once


@dataclass(frozen=True)
class Row:
    """One record: its text, and its bytes in the file (none in a Parquet table)."""

    text: bytes
    data: bytes
    line: int


class RowWriter(Protocol):
    """Writes the next rows of a table."""

    def write(self, rows: Sequence[Row], keep: Sequence[bool], values: Values) -> None:
        """Write those of these rows that are kept, with the values of the new columns."""
        ...

    def close(self) -> None:
        """Write what ends the table."""
        ...


@dataclass(frozen=True)
class Table:
    """A file of records that can be read several times."""

    source: Source
    kind: str  # jsonl, csv, tsv or parquet
    settings: DataSettings

    @classmethod
    def of(cls, source: Source, settings: DataSettings) -> Table | None:
        """Return the table, or None if this is plain text; skipped bytes would lose the rows' places."""
        kind = source.format if settings.format == "auto" else settings.format
        if kind == "text":
            return None
        if settings.on_error != "stop":
            raise ConfigError(
                f"'data.on_error' is '{settings.on_error}', but the rows of a table are copied whole; mend "
                "the file, or leave the setting out"
            )
        return cls(source, kind, settings.model_copy(update={"format": kind}))

    def rows(self) -> Iterator[Row]:
        """Yield all records in order, in bounded memory."""
        reader = Reader([self.source], self.settings, raw=True, digest=False)
        if self.kind == "parquet":
            for block in reader:
                yield Row(block.data, b"", block.line)
            return
        lines, before = _Lines(self.source), None
        for block in reader:
            data = lines.before(block.line)
            if before is not None:
                yield Row(before.data, _TRAILING.sub(rb"\1", data), before.line)
            before = block
        if before is not None:
            yield Row(before.data, _TRAILING.sub(rb"\1", lines.rest()), before.line)

    def header(self) -> bytes:
        """Return what stands before the first record: the names of the columns, if the table has them."""
        if self.kind == "parquet":
            return b""
        for block in Reader([self.source], self.settings, raw=True, digest=False):
            return _TRAILING.sub(rb"\1", _Lines(self.source).before(block.line))
        return b""

    def writer(self, target: IO[bytes], columns: Columns) -> RowWriter:
        """Return what copies rows of this table, with new columns, in the same format."""
        if self.kind == "parquet":
            return _ParquetWriter(self, target, columns)
        if self.kind == "jsonl":
            return _JsonWriter(self, target)
        return _DelimitedWriter(self, target, columns)


def open_table(source: Source, settings: DataSettings, stack: ExitStack) -> Table | None:
    """Return the table that is read from a file or standard input, or None if it is plain text.

    What can be read only once is written to a temporary file, which goes when the ``stack`` is closed.
    """
    table = Table.of(source, settings)
    if table is None or table.kind == "parquet" or source.size is not None:
        return table
    spool: IO[bytes] = stack.enter_context(tempfile.NamedTemporaryFile(prefix="nextword-rows-"))  # noqa: SIM115
    for piece in read_bytes(source):
        spool.write(piece)
    spool.flush()
    return Table(Source(spool.name, size=0, title=source.shown), table.kind, table.settings)


class _Lines:
    """The lines of a file as they are, taken in order."""

    def __init__(self, source: Source) -> None:
        self._pieces, self._waiting, self._line = read_bytes(source), b"", 1

    def before(self, line: int) -> bytes:
        """Return the lines that have not been taken, up to the one of this number, from 1."""
        parts: list[bytes] = []
        while self._line < line:
            end = self._waiting.find(b"\n") + 1
            if not end:
                piece = next(self._pieces, b"")
                if not piece:
                    break
                self._waiting += piece
                continue
            end = _nth(self._waiting, line - self._line, end)
            parts.append(self._waiting[:end])
            self._line += parts[-1].count(b"\n")
            self._waiting = self._waiting[end:]
        return b"".join(parts)

    def rest(self) -> bytes:
        """Return everything that has not been taken."""
        return self._waiting + b"".join(self._pieces)


def _nth(data: bytes, count: int, end: int) -> int:
    """Return the end of the line of this number, or of the last whole one; ``end`` is that of the first."""
    for _ in range(count - 1):
        following = data.find(b"\n", end) + 1
        if not following:
            break
        end = following
    return end


class _JsonWriter:
    """JSON lines: new fields come last."""

    def __init__(self, table: Table, target: IO[bytes]) -> None:
        self._table, self._target = table, target

    def write(self, rows: Sequence[Row], keep: Sequence[bool], values: Values) -> None:
        """Write the kept rows."""
        for number, (row, kept) in enumerate(zip(rows, keep, strict=True)):
            if kept:
                self._target.write(self._line(row, {name: value[number] for name, value in values.items()}))

    def close(self) -> None:
        """Do nothing: lines need no end."""

    def _line(self, row: Row, new: Mapping[str, Any]) -> bytes:
        if not new:
            return _ended(row.data)
        body = row.data.removeprefix(_BOM).strip()
        record = json.loads(body)
        added = json.dumps({name: _finite(value) for name, value in new.items()}, ensure_ascii=False).encode()
        if isinstance(record, str):
            return b'{"text": ' + body + b", " + added[1:] + b"\n"
        _check_new(new, record, self._table.source, row.line)
        return body[:-1].rstrip() + b", " + added[1:] + b"\n"


class _DelimitedWriter:
    """CSV and TSV: new columns come last, behind the same delimiter."""

    def __init__(self, table: Table, target: IO[bytes], columns: Columns) -> None:
        self._target, header = target, table.header()
        first = next(row for row in table.rows() if row.text.strip())
        self._delimiter = _delimiter(first, table.kind)
        if header.strip():
            cells = next(csv.reader([header.decode("utf-8").rstrip("\r\n")], delimiter=self._delimiter), [])
            _check_new(columns, cells, table.source, 1)
            header = self._with(header, list(columns))
        target.write(header)

    def write(self, rows: Sequence[Row], keep: Sequence[bool], values: Values) -> None:
        """Write the kept rows."""
        for number, (row, kept) in enumerate(zip(rows, keep, strict=True)):
            if kept:
                cells = [_cell(value[number]) for value in values.values()]
                self._target.write(self._with(row.data, cells))

    def close(self) -> None:
        """Do nothing: lines need no end."""

    def _with(self, data: bytes, cells: list[str]) -> bytes:
        data = _ended(data)
        if not cells:
            return data
        end = b"\r\n" if data.endswith(b"\r\n") else b"\n"
        return data.removesuffix(end) + "".join(self._delimiter + cell for cell in cells).encode() + end


class _ParquetWriter:
    """Parquet: the rows are read once more, with all their columns."""

    def __init__(self, table: Table, target: IO[bytes], columns: Columns) -> None:
        try:
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise MissingPart("pyarrow", "data", "writing a Parquet table") from error
        self._file = parquet.ParquetFile(table.source.path)
        self._batches, self._target = self._file.iter_batches(batch_size=_ROWS), target
        _check_new(columns, self._file.schema_arrow.names, table.source, None)
        self._columns = columns
        self._waiting: Any = None
        self._writer: Any = None

    def write(self, rows: Sequence[Row], keep: Sequence[bool], values: Values) -> None:
        """Write the kept rows."""
        import pyarrow as arrow
        import pyarrow.parquet as parquet

        kinds = {float: arrow.float64(), int: arrow.int64(), str: arrow.string()}
        table = self._take(len(rows))
        for name, cells in values.items():
            kind = kinds[self._columns[name]]
            table = table.append_column(name, arrow.array([_finite(cell) for cell in cells], kind))
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._target, table.schema)
        self._writer.write_table(table.filter(arrow.array(list(map(bool, keep)), arrow.bool_())))

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()
        self._file.close()

    def _take(self, count: int) -> Any:
        """Return the next rows of the file as a table."""
        import pyarrow as arrow

        waiting = [] if self._waiting is None else [self._waiting]
        while sum(len(each) for each in waiting) < count:
            waiting.append(arrow.Table.from_batches([next(self._batches)]))
        table = arrow.concat_tables(waiting)
        self._waiting = table.slice(count)
        return table.slice(0, count)


def _ended(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"


def _finite(value: Any) -> Any:
    """Return None for what JSON and tables have no number for."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    value = _finite(value)
    return "" if value is None else f"{value:.6f}" if isinstance(value, float) else str(value)


def _delimiter(row: Row, kind: str) -> str:
    """Return the delimiter under which the record has its text as a cell: that of the reader."""
    usual = "\t" if kind == "tsv" else ","
    lines = [f"{line}\n" for line in row.data.removeprefix(_BOM).decode("utf-8").split("\n")]
    text = row.text.decode("utf-8")
    for delimiter in (usual, ",", ";", "\t", "|"):
        if kind == "tsv" and delimiter == "\t":  # a quote is an ordinary character
            cells = next(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE), [])
        else:
            cells = next(csv.reader(lines, delimiter=delimiter), [])
        if any(cell and (text == cell or text.startswith(cell + "\n")) for cell in cells):
            return delimiter
    return usual


def _check_new(new: Mapping[str, Any], there: Any, source: Source, line: int | None) -> None:
    for name in new:
        if name in there:
            raise DataError(
                f"there is a column '{name}' already; choose other names with --prefix", source.shown, line
            )

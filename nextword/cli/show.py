"""Printing: results on standard output, notes on standard error, one JSON object on request."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nextword.core.display import printable


class ReaderGone(Exception):  # noqa: N818 - not an error of the program
    """The reader of our output has closed the pipe, as after ``| head``."""


@contextmanager
def _to_reader() -> Iterator[None]:
    """Turn a broken pipe into our own exception, before the parser turns it into an exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        raise ReaderGone from error


def result(text: str) -> None:
    """Print one result for people; control characters are escaped."""
    with _to_reader():
        sys.stdout.write(printable(text) + "\n")


def note(text: str) -> None:
    """Print one sentence on standard error."""
    sys.stderr.write(printable(text) + "\n")


def next_command(command: str) -> None:
    """Print the command that one would naturally run next."""
    note(f"next: {command}")


def as_json(value: Any) -> None:
    """Print one JSON value on one line; infinity and NaN become null."""
    with _to_reader():
        sys.stdout.write(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False) + "\n")


def table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows under one heading, columns as wide as their widest cell; numbers are right-aligned."""
    if not rows:
        return
    columns = list(rows[0])
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    right = [all(isinstance(row.get(column), (int, float, type(None))) for row in rows) for column in columns]
    widths = [max(len(line[i]) for line in [columns, *cells]) for i in range(len(columns))]
    for line in [columns, *cells]:
        padded = (
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, right, strict=True)
        )
        result("  ".join(padded).rstrip())


def figures(values: Mapping[str, Any]) -> None:
    """Print names and values, one per line."""
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        shown = ", ".join(map(_cell, value)) if isinstance(value, (list, tuple)) else _cell(value)
        result(f"{name.replace('_', ' '):<{width}}  {shown}")


def pieces(texts: Iterable[str]) -> None:
    """Print text as it comes, without waiting for the end of a line."""
    for text in texts:
        with _to_reader():
            sys.stdout.write(printable(text))


def stream(chunks: Iterable[bytes], out: str | None = None) -> None:
    """Write lines as bytes to a file or standard output; on a terminal control characters are escaped."""
    if out is not None:
        from pathlib import Path

        from nextword.store.disk import explaining
        from nextword.system.atomic import writing

        with explaining(Path(out)), writing(out) as file:
            file.writelines(chunks)
    elif sys.stdout.isatty():
        pieces(chunk.decode("utf-8", "surrogateescape") for chunk in chunks)
    else:
        with _to_reader():
            sys.stdout.buffer.writelines(chunks)


@contextmanager
def raw_output(out: str | None, json: bool) -> Iterator[Any]:
    """Open what a verb writes lines to: the file, standard output, or nothing if JSON is printed there.

    On a terminal control characters are escaped.
    """
    if out is not None:
        yield out
    elif json:
        with open(os.devnull, "wb") as nowhere:
            yield nowhere
    elif sys.stdout.isatty():
        yield _Terminal()
    else:
        with _to_reader():
            yield sys.stdout.buffer


class _Terminal:
    """Bytes to a terminal, control characters escaped."""

    def write(self, data: bytes) -> int:
        sys.stdout.write(printable(data.decode("utf-8", "backslashreplace")))
        return len(data)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return (
            f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}" if math.isfinite(value) else str(value)
        )
    return printable(str(value)).replace("\n", "\\n").replace("\t", "\\t")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value

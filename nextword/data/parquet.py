"""Read Parquet tables, a batch of rows at a time, with the pyarrow package.

Every row's text is a document.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nextword.core.contracts import Block
from nextword.core.errors import DataError, MissingPart
from nextword.core.suggestions import nearest
from nextword.data.paths import STDIN, Source
from nextword.data.plain import TextChecker
from nextword.data.settings import DataSettings

_ROWS = 1024


def parquet_blocks(source: Source, settings: DataSettings, checker: TextChecker) -> Iterator[Block]:
    """Yield the texts of a Parquet table's rows, one block each."""
    if source.path in STDIN:
        raise DataError("a Parquet table cannot be read from standard input; give the file", source.shown)
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingPart("pyarrow", "data", "reading a Parquet table") from error
    try:
        with parquet.ParquetFile(source.path) as file:
            yield from _rows(file, _names(file.schema_arrow.names, source, settings), source, checker)
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0][:200]
        raise DataError(f"this Parquet table cannot be read ({reason})", source.shown) from error


def _names(there: list[str], source: Source, settings: DataSettings) -> list[str]:
    wanted = [name.strip() for name in settings.text_column.split(",") if name.strip()]
    if not wanted:
        wanted = there if len(there) == 1 else ["text"]
    for name in wanted:
        if name not in there:
            guess = nearest(name, there)
            hint = f"did you mean '{guess}'? Available" if guess else "available"
            message = f"there is no column '{name}'; {hint}: {', '.join(there[:20])}"
            raise DataError(f"{message}. Choose with --set data.text_column=NAME", source.shown)
    return wanted


def _rows(file: Any, names: list[str], source: Source, checker: TextChecker) -> Iterator[Block]:
    number, found = 0, False
    for batch in file.iter_batches(batch_size=_ROWS, columns=names):
        for cells in zip(*(batch.column(name).to_pylist() for name in names), strict=True):
            number += 1
            texts = [cell for cell in cells if cell is not None]
            if not texts:
                checker.without_text()
            if not all(isinstance(text, str) for text in texts):
                message = f"the column contains {type(texts[0]).__name__}, not text"
                raise DataError(f"row {number}: {message}", source.shown)
            data = "\n".join(texts).encode("utf-8")
            if b"\0" in data:
                raise DataError(f"row {number}: the text contains a NUL character", source.shown)
            found = found or bool(data.strip())
            yield Block(data, True, source.shown, number)
    if not found:
        raise DataError("no row of this table contains any text", source.shown)

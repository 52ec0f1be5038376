"""What a verb writes line by line: to a file, to a pipe, or to a terminal with control characters escaped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nextword.cli.show import pieces, to_reader
from nextword.core.display import printable


def stream(chunks: Iterable[bytes], out: str | None = None) -> None:
    """Write lines as bytes to a file or standard output; on a terminal control characters are escaped."""
    if out is not None:
        from nextword.system.disk import explaining, writing

        with explaining(Path(out)), writing(out) as file:
            file.writelines(chunks)
    elif sys.stdout.isatty():
        pieces(chunk.decode("utf-8", "surrogateescape") for chunk in chunks)
    else:
        with to_reader():
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
        with to_reader():
            yield sys.stdout.buffer


class _Terminal:
    """Bytes to a terminal, control characters escaped."""

    def write(self, data: bytes) -> int:
        sys.stdout.write(printable(data.decode("utf-8", "backslashreplace")))
        return len(data)

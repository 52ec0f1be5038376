"""The lines of a file, for verbs that read one input a line."""

from __future__ import annotations

import os
from collections.abc import Iterator

from nextword.data.settings import DataSettings
from nextword.data.source import Source


def read_lines(file: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of a file (``-``: standard input) without their ends; a line may span blocks."""
    waiting: list[bytes] = []
    for block in Source.for_reading([file], DataSettings()).blocks():
        *lines, rest = block.data.split(b"\n")
        for line in lines:
            yield b"".join((*waiting, line)).removesuffix(b"\r").decode()
            waiting = []
        if rest:
            waiting.append(rest)
        if block.ends_document and waiting:
            yield b"".join(waiting).decode()
            waiting = []
    if waiting:
        yield b"".join(waiting).decode()

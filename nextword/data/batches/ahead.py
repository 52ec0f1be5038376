"""Read ahead, but not far: some inputs at a time, so that a file of any length fits into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def read_ahead(inputs: Iterable[T], most: int, size: Callable[[T], int], total: int) -> Iterator[list[T]]:
    """Yield lists of at most so many inputs, whose sizes add up to about ``total`` at most."""
    chunk: list[T] = []
    used = 0
    for each in inputs:
        chunk.append(each)
        used += size(each)
        if len(chunk) >= most or used >= total:
            yield chunk
            chunk, used = [], 0
    if chunk:
        yield chunk

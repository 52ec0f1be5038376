"""What a recipe is, and how its pairs are divided and written as a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from nextword.core.errors import DataError
from nextword.data.paths import resolve
from nextword.data.plain import TextChecker
from nextword.data.settings import DataSettings
from nextword.data.tables import lines_of
from nextword.system.disk import write_file

Pair = tuple[str, str]  # a source and its target
Line = tuple[int, str]  # its number from 1, and its text
Recipe = Callable[[str, Iterable[Line]], Iterator[Pair]]  # of a file's name and its lines
Part = Literal["spread", "last"]


def pairs_of(recipe: Recipe, files: Sequence[str]) -> list[Pair]:
    """Return the pairs of files by a recipe; there must be at least one."""
    found: list[Pair] = []
    for source in resolve(files):
        lines = lines_of(source, TextChecker(source.shown, DataSettings(format="text")))
        found += recipe(source.shown, enumerate((line.rstrip("\r\n") for line in lines), start=1))
    if not found:
        raise DataError("there is no pair of texts here", files[0])
    return found


def divide(pairs: Sequence[Pair], share: float, part: Part) -> tuple[list[Pair], list[Pair]]:
    """Divide pairs in two, the second with this share of the sources; a source and its targets stay together.

    ``spread``: every tenth source, say; ``last``: those at the end.
    """
    order = {source: at for at, source in enumerate(dict.fromkeys(source for source, _ in pairs))}
    first = len(order) - round(share * len(order))
    step = len(order) / max(1, len(order) - first)

    def is_held(source: str) -> bool:
        at = order[source]
        return at >= first if part == "last" else int((at + 1) / step) > int(at / step)

    return [each for each in pairs if not is_held(each[0])], [each for each in pairs if is_held(each[0])]


def write_pairs(path: str | os.PathLike[str], pairs: Iterable[Pair]) -> int:
    """Write a pair a line, source TAB target; returns how many."""
    lines = [f"{_one_line(source)}\t{_one_line(target)}\n" for source, target in pairs]
    write_file(path, "".join(lines).encode())
    return len(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())

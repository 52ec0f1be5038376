"""Labelled examples that are not files: a part of some, for `compare`, and a text, for `inspect`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

E = TypeVar("E")


@dataclass(frozen=True)
class Part(Generic[E]):
    """Examples, and what the facts of a run say about the files they are from."""

    names: tuple[str, ...]
    sha256: str  # of the part
    size: int | None  # bytes of the part, roughly
    examples: Sequence[E]

    def read(self) -> list[E]:
        """Return the examples."""
        return list(self.examples)


@contextmanager
def as_file(text: str, ending: str) -> Iterator[str]:
    """Write a text to a file for a while, so that it is read as files are."""
    with tempfile.TemporaryDirectory(prefix="nextword-") as folder:
        path = os.path.join(folder, f"text.{ending}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else text + "\n")
        yield path

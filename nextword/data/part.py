"""A part of some labelled examples that were read already: what `compare` trains every model on."""

from __future__ import annotations

from collections.abc import Sequence
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

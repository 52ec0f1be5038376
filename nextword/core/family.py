"""What a family of models offers to training and loading; the catalog's slot "model" names them.

A family is an object, not a class hierarchy: settings, fit, save, load. Progress is yielded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from nextword.core.contracts import Array, LanguageModel, Tokenizer
from nextword.core.events import Event
from nextword.core.settings import Settings

if TYPE_CHECKING:
    from nextword.store.reading import RunFolder
    from nextword.store.writing import NewRun


@dataclass(frozen=True)
class Budget:
    """What a fit may use, and where it may put things."""

    seed: int = 0
    memory: int = 0  # bytes of all processes together; 0: no limit
    folder: Path | None = None  # the run being written: arrays too large for memory may be put here at once
    scratch: Path | None = None  # for temporary files, on the same disk; removed afterwards
    engine: str = "local"  # who counts: this machine, or "spark"
    master: str = ""  # of a cluster


@runtime_checkable
class Family(Protocol):
    """One family: ``FAMILY`` in its module."""

    name: str
    Settings: type[Settings]
    default_tokenizer: str
    holds_text: bool  # whether a model can hold pieces of its training text word for word

    def fit(self, ids: Array, tokenizer: Tokenizer, settings: Any, budget: Budget) -> Iterator[Event]:
        """Learn from packed ids (``START w … END …``, int32, in memory or memory-mapped).

        Yields events; the last one is ``Done(model)``.
        """
        ...

    def save(self, model: LanguageModel, folder: NewRun) -> None:
        """Write the model's own files; those already in ``folder.path`` stay as they are."""
        ...

    def load(self, folder: RunFolder, settings: Any, tokenizer: Tokenizer) -> LanguageModel:
        """The model of a run; large arrays are memory-mapped."""
        ...

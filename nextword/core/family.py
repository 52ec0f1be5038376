"""The interface of a model family for training and loading; the catalog lists families in slot "model".

A family is an object, not a class hierarchy. How it is trained is known by what it has: count families `fit`,
network families `build`, composite families are made of `parts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from nextword.core.events import Event
from nextword.core.settings import Settings, TrainSettings

if TYPE_CHECKING:
    from nextword.store.reading import RunFolder
    from nextword.store.writing import NewRun


@dataclass(frozen=True)
class Budget:
    """The resources a fit may use."""

    seed: int = 0
    memory: int = 0  # bytes, summed over all processes; 0: no limit
    folder: Path | None = None  # the run being written, for arrays too large for memory
    scratch: Path | None = None  # for temporary files, on the same disk, removed afterwards
    engine: str = "local"  # what does the counting: this machine, or "spark"
    master: str = ""  # URL of a Spark master
    seconds: float = math.inf  # about; a family that tries several ways tries fewer


@dataclass(frozen=True)
class Rung:
    """One size of a family, and what it is trained with."""

    name: str
    settings: Mapping[str, Any]
    about: str


@dataclass(frozen=True)
class Cost:
    """What a fit takes, roughly."""

    tokens: int
    seconds: float
    memory: int
    disk: int


@runtime_checkable
class Family(Protocol):
    """One family: ``FAMILY`` in its module."""

    name: str
    task: str  # the task it is for
    Settings: type[Settings]  # the group ``model``
    Training: type[TrainSettings]  # the group ``train``
    defaults: Mapping[str, Any]  # settings below those of the user
    default_tokenizer: str
    holds_text: bool  # whether a model can hold pieces of its training text word for word
    measures: bool  # whether training measures held-out examples, so that some are held out by default

    def save(self, model: Any, folder: NewRun) -> None:
        """Write the model's own files; those already in ``folder.path`` stay as they are."""
        ...

    def load(self, folder: RunFolder, settings: Any, vocabulary: Any) -> Any:
        """Return the model of a run; large arrays are memory-mapped."""
        ...


@runtime_checkable
class CountFamily(Family, Protocol):
    """A family that is fitted without gradients, in passes over the examples."""

    fit: Callable[..., Iterator[Event]]  # its task knows the arguments; the last event is ``Done(model)``

    def estimate(self, settings: Any, size: int, text: Any) -> Cost:
        """Return what fitting a text of this size in bytes takes."""
        ...


@runtime_checkable
class NetworkFamily(Family, Protocol):
    """A family that learns step by step, in the trainer."""

    ladder: tuple[Rung, ...]  # its sizes, small to large: what ``--minutes`` chooses from
    row_length: int  # positions that a row of a batch has by default; 0: the model's context
    build: Callable[..., Any]  # makes a network; its task knows the arguments


@runtime_checkable
class Countable(Protocol):
    """A family that can say how large a model is without building it."""

    def count_parameters(self, settings: Any, vocab_size: int) -> float:
        """Return the number of parameters."""
        ...


@runtime_checkable
class CompositeFamily(Family, Protocol):
    """A family whose models are made of models that are trained one after another."""

    made_by: str  # the command that makes one of runs
    needs_minutes: bool  # whether training one always takes a limit of time, which its networks share

    def parts(self, settings: Any) -> tuple[str, ...]:
        """Return the names of the models to train."""
        ...

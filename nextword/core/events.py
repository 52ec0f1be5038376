"""What happens while something long runs: yielded, never called back.

Terminal, report and later the page read the same events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Event:
    """Something that happened."""


@dataclass(frozen=True)
class Stage(Event):
    """A named piece of work begins, as lmplz announces its five steps."""

    name: str
    total: int | None = None  # in `unit`, where it is known beforehand
    unit: str = ""


@dataclass(frozen=True)
class Progress(Event):
    """So much of the current stage is done."""

    done: int


@dataclass(frozen=True)
class Note(Event):
    """One sentence the user should read; nothing stops."""

    message: str


@dataclass(frozen=True)
class Measure(Event):
    """Numbers for ``metrics.jsonl``."""

    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step(Event):
    """One update of the weights; what is not known yet is None."""

    step: int  # updates made
    steps: int | None  # expected in all
    seconds: float  # since the command began
    seconds_left: float | None
    tokens: int  # predictions learned from, so far
    loss: float  # nats per token of this batch
    rate: float  # the learning rate
    norm: float  # of the gradient, before clipping
    tokens_per_second: float
    memory: int  # peak resident bytes


@dataclass(frozen=True)
class Valid(Event):
    """The held-out text was measured."""

    step: int
    seconds: float
    tokens: int
    nll: float  # nats per token
    bits_per_byte: float | None
    best: bool  # the best so far, so its weights are kept


@dataclass(frozen=True)
class Done(Event):
    """The last event: what was made."""

    result: Any = None

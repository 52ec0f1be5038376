"""What one kind of text-to-text job is judged by, beside what every one reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nextword.evaluation.pairs.counted import Counted


@dataclass(frozen=True)
class Found:
    """What a job measures of its own."""

    counted: Mapping[str, Counted] = field(default_factory=dict)  # what sentences add up to
    other: Mapping[str, float] = field(default_factory=dict)  # what only a whole corpus has


@dataclass(frozen=True)
class Measure:
    """How a job is judged; in the slot "measure"."""

    name: str
    decides: str  # the measure that says which model is better
    higher: bool  # whether more of it is better
    find: Callable[[Sequence[str], Sequence[Sequence[str]]], Found]  # of hypotheses and their references


def nothing(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Found:
    """Measure nothing beside what every job reports."""
    return Found()

"""What is kept of one run of a bench: one JSON file for each row and seed, written at once when it is done.

The files alone are enough to continue: seeds and rows can be added later, on another machine, without the
trained models.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nextword.comparison.rows import Result, read_json, write_json

FOLDER = "rows"


@dataclass(frozen=True)
class BenchResult(Result):
    """One run; ``curve``: seconds, tokens, and bits per byte of the text for choices."""

    title: str = ""
    early: float | None = None  # nats per token of the text for choices after an eighth of the steps
    final: float | None = None  # … at the end
    bits_per_byte: float | None = None  # of the new text
    perplexity: float | None = None  # of its tokens
    tokens: int = 0  # trained on
    steps: int = 0
    rate: float = 0.0
    parameters: int = 0
    operations: float | None = None  # multiply-adds for a token, forward
    speed: float = 0.0  # steps per second of the processor, timed beside the baseline
    relative_speed: float = 1.0
    precision: str = ""
    threads: int = 0
    version: str = ""
    signature: str = ""
    losses: dict[str, float | None] = field(default_factory=dict)  # of the sweep, by rate

    @property
    def cost(self) -> float | None:
        """Bits per byte of the new text."""
        return self.bits_per_byte

    @property
    def tuned(self) -> float | None:
        """Bits per byte of the text for choices."""
        return self.curve[-1][2] if self.curve else None


def kept(out: Path, label: str, key: str) -> BenchResult | None:
    """Return what was written of a run with the same key, if anything."""
    values = read_json(out / FOLDER / f"{label}.json")
    if not isinstance(values, dict) or values.get("key") != key:
        return None
    try:
        found = BenchResult(**values)
    except TypeError:  # written by hand, or by another version
        return None
    return found


def keep(out: Path, label: str, result: BenchResult) -> None:
    """Write a run's numbers, atomically."""
    write_json(out / FOLDER / f"{label}.json", asdict(result))


def short(result: BenchResult) -> dict[str, Any]:
    """Return the numbers that a progress line shows."""
    return {"row": result.title, "seed": result.seed, "bits_per_byte": result.bits_per_byte}

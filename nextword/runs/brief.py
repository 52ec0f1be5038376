"""The few numbers that tell of a training, out of the hundreds that its ``metrics.jsonl`` holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_TOLD = ("loss", "tokens_per_second")  # of the last row of learning


def brief(
    metrics: Iterable[dict[str, Any]], decides: str = "valid_nll", higher: bool = False
) -> dict[str, Any]:
    """Return the last state of learning and the best measurement; rows without a step are kept as they are.

    ``decides``: the measure that says which is best; ``higher``: more of it is better.
    """
    steps = 0
    last: dict[str, Any] = {}
    best: dict[str, Any] = {}
    other: dict[str, Any] = {}
    for row in metrics:
        steps = max(steps, row.get("step", 0))
        if "step" not in row:
            other |= row
        elif decides in row:
            best = row if not best or _cost(row[decides], higher) < _cost(best[decides], higher) else best
        else:
            last = row
    told = {"steps": steps} if steps else {}
    told |= {name: last[name] for name in _TOLD if name in last}
    held = {name: value for name, value in best.items() if name.startswith("valid_")}
    return told | held | ({"best_step": best["step"]} if best else {}) | other


def _cost(value: float | None, higher: bool) -> float:
    return float("inf") if value is None else -float(value) if higher else float(value)

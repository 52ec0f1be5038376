"""Which differences a bench can find, said before it begins: by how much the baseline's seeds differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nextword.evaluation.significance import LEVEL, POWER, SEEDS, spread, student_quantile


def detectable(deviation: float, seeds: int, rows: int = 1) -> float:
    """Return the smallest difference that most benches find, if seeds alone make runs differ.

    Two rows of this many seeds each, a two-sided test by Student's distribution. ``rows``: how many are
    tested at once; the level of the first is divided by them (Bonferroni, the strictest step of Holm's).
    """
    if seeds < 2:
        return math.inf
    freedom = 2 * (seeds - 1)
    reach = student_quantile(1 - LEVEL / max(1, rows) / 2, freedom) + student_quantile(POWER, freedom)
    return reach * deviation * math.sqrt(2 / seeds)


def power_note(losses: Sequence[float], seeds: int, rows: int) -> str:
    """Say what a bench of this many seeds can find, from the losses of a pilot."""
    deviation = spread(losses)
    if deviation is None:
        return "the pilot diverged, so it is not known which differences can be found"
    pilot = f"pilot: {len(losses)} seeds of the baseline differ by {deviation:.4f} nats per token"
    if seeds < SEEDS:
        fewer = f"; {seeds} seed{'' if seeds == 1 else 's'} per row can give no verdict"
        return f"{pilot}{fewer}, with {SEEDS} {_found(deviation, SEEDS, rows)}"
    return f"{pilot}; with {seeds} seeds a row {_found(deviation, seeds, rows)}"


def _found(deviation: float, seeds: int, rows: int) -> str:
    one, all_ = detectable(deviation, seeds), detectable(deviation, seeds, rows)
    return (
        f"{POWER:.0%} of such benches find a difference of {one:.4f} in one row, and of {all_:.4f} after the "
        f"correction for {rows} rows"
    )

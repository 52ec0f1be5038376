"""How a small ranking agrees with the published one: Spearman's rho, and the rows that agree or do not.

[MAUSAM "Do Transformer Modifications Transfer Across Implementations and Applications?"]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.comparison.bench.published import Published

_FEWEST = 4  # rows that a correlation needs
_NAMED = 6  # rows that are named on each side
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ranked:
    """A row with its rank here and in the published table, from 1, the best first."""

    title: str
    here: float
    published: float

    @property
    def moved(self) -> float:
        """How many places it is worse here than there."""
        return self.here - self.published


@dataclass(frozen=True)
class Agreement:
    """The two rankings side by side."""

    rows: tuple[Ranked, ...]
    rho: float  # of the final losses
    same_side: tuple[str, ...]  # better than the baseline here and there, or worse here and there
    other_side: tuple[str, ...]
    baseline: str

    def __str__(self) -> str:
        """Say in a few sentences where the rankings agree and where not."""
        both = len(self.same_side) + len(self.other_side)
        apart = sorted(self.rows, key=lambda row: -abs(row.moved))[:_NAMED]
        moved = ", ".join(f"{row.title} ({row.published:g} there, {row.here:g} here)" for row in apart)
        lines = [
            f"Spearman's rho with the published final losses is {self.rho:+.2f} over {len(self.rows)} rows.",
            f"{len(self.same_side)} of {both} rows are on the same side of {self.baseline} as in the table.",
        ]
        if self.other_side:
            lines.append(f"On the other side: {', '.join(self.other_side)}.")
        return " ".join([*lines, f"Furthest apart: {moved}."])

    def to_json(self) -> dict[str, Any]:
        """Return every number."""
        ranks = [{"row": row.title, "here": row.here, "published": row.published} for row in self.rows]
        sides = {"same_side": list(self.same_side), "other_side": list(self.other_side)}
        return {"rho": self.rho, **sides, "ranks": ranks}


def agree(found: Sequence[tuple[str, float | None, Published | None]], baseline: str) -> Agreement | None:
    """Compare rows that have both numbers; None where there are too few."""
    able = [
        (title, bits, known.final)
        for title, bits, known in found
        if bits is not None and known is not None and known.final is not None
    ]
    if len(able) < _FEWEST:
        return None
    here, there = ranks([bits for _, bits, _ in able]), ranks([final for _, _, final in able])
    rows = tuple(
        Ranked(title, float(a), float(b)) for (title, _, _), a, b in zip(able, here, there, strict=True)
    )
    base = next(((bits, final) for title, bits, final in able if title == baseline), None)
    sides: dict[bool, list[str]] = {True: [], False: []}
    for title, bits, final in able:
        if base is not None and title != baseline and bits != base[0] and final != base[1]:
            sides[(bits < base[0]) == (final < base[1])].append(title)
    return Agreement(rows, spearman(here, there), tuple(sides[True]), tuple(sides[False]), baseline)


def ranks(values: Sequence[float]) -> Array:
    """Return the rank of each number, from 1; equal ones share the mean of their places."""
    found = np.asarray(values, dtype=np.float64)
    below = (found[None, :] < found[:, None]).sum(axis=1)
    equal = (found[None, :] == found[:, None]).sum(axis=1)
    mean: Array = below + (equal + 1) / 2
    return mean


def spearman(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return Spearman's rho (1904): Pearson's correlation of ranks, with shared ranks for equal numbers."""
    x, y = ranks(np.asarray(a).tolist()), ranks(np.asarray(b).tolist())
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size else 0.0

"""Heat maps: numbers as colour intensity in named rows and columns, such as attention or gates over time.

A cell has a tooltip with its number; large maps are drawn as one path per intensity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.drawing.elements import (
    LETTER,
    cell,
    frame,
    ground,
    scale,
    share_of,
    shortened,
    turned,
    width_of,
    words,
)

Array = np.ndarray[Any, np.dtype[Any]]
WIDTH = 720
_LARGEST, _SMALLEST = 26.0, 3.0
_TOOLTIPS = 2500  # up to this many cells have tooltips
_LONGEST = 110.0  # pixels per name


@dataclass(frozen=True)
class Names:
    """An axis of a map: its label, and the name of every row or column."""

    label: str
    each: Sequence[str]


def heat(
    values_RC: Array,
    rows: Names,
    columns: Names,
    title: str,
    unit: str,
    limits: tuple[float, float] | None = None,
) -> str:
    """Draw a map with names at the left and above, and a scale below; NaN stays empty."""
    values_RC = np.asarray(values_RC, dtype=np.float64)
    low, high = limits or _limits(values_RC)
    left = 34 + _room(rows)
    R, C = values_RC.shape
    wide = min(_LARGEST, max(_SMALLEST, (WIDTH - left - 40) / max(C, 1)))
    tall = min(_LARGEST, max(_SMALLEST, wide if R > 12 else 22.0))
    above = 26 + 0.87 * _room(columns, wide if _is_short(columns, wide) else 0.0)
    parts = [_cells(values_RC, rows, columns, (left, above, wide, tall), (low, high), unit)]
    parts += _row_names(rows, left, above, tall)
    parts += _column_names(columns, left, above, wide)
    bottom = above + tall * R
    parts.append(words(left + wide * C / 2, bottom + 18, columns.label, "middle", "label"))
    parts.append(turned(12, above + tall * R / 2, rows.label, -90, "middle", "label"))
    parts.append(scale(left, bottom + 30, low, high, unit))
    return frame("".join(parts), title, max(WIDTH, left + wide * C + 60), bottom + 60)


def _limits(values_RC: Array) -> tuple[float, float]:
    real = values_RC[np.isfinite(values_RC)]
    if not real.size:
        return 0.0, 1.0
    low, high = float(real.min()), float(real.max())
    if low < 0 < high:
        most = max(-low, high)
        return -most, most
    return min(0.0, low), max(high, low + 1e-9)


def _cells(
    values_RC: Array,
    rows: Names,
    columns: Names,
    place: tuple[float, float, float, float],
    limits: tuple[float, float],
    unit: str,
) -> str:
    left, above, wide, tall = place
    if values_RC.size > _TOOLTIPS:
        return paths(values_RC, place, limits)
    parts = []
    for (r, c), value in np.ndenumerate(values_RC):
        if math.isfinite(value):
            style = ground(share_of(value, *limits))
            tooltip = f"{rows.each[r]} · {columns.each[c]}: {value:.3g} {unit}"
            parts.append(cell(left + c * wide, above + r * tall, wide - 0.6, tall - 0.6, style, tooltip))
    return "".join(parts)


def paths(values_RC: Array, place: tuple[float, float, float, float], limits: tuple[float, float]) -> str:
    """Draw the same cells compactly: one path per intensity, and none for empty cells."""
    left, above, wide, tall = place
    found: dict[str, list[str]] = {}
    for (r, c), value in np.ndenumerate(np.asarray(values_RC, dtype=np.float64)):
        share = share_of(value, *limits) if math.isfinite(value) else 0.0
        if abs(share) > 0.02:
            square = f"M{left + c * wide:.1f} {above + r * tall:.1f}h{wide:.1f}v{tall:.1f}h-{wide:.1f}z"
            found.setdefault(ground(share), []).append(square)
    return "".join(f'<path style="{style}" d="{"".join(squares)}"/>' for style, squares in found.items())


def _room(names: Names, fitting: float = 0.0) -> float:
    """Return the room for the longest name that does not fit into this much, with a margin for wide fonts."""
    long = [width for width in map(width_of, names.each) if width > fitting]
    return 1.05 * min(_LONGEST, max(long, default=0.0))


def _is_short(names: Names, wide: float) -> bool:
    """Return whether nearly all names are short enough to be drawn upright."""
    return sum(width_of(name) <= wide for name in names.each) >= 0.9 * len(names.each)


def _row_names(rows: Names, left: float, above: float, tall: float) -> list[str]:
    every = max(1, math.ceil(11 / tall))
    return [
        words(left - 6, above + tall * (r + 0.5) + 4, shortened(name, _LONGEST), "end")
        for r, name in enumerate(rows.each)
        if r % every == 0
    ]


def _column_names(columns: Names, left: float, above: float, wide: float) -> list[str]:
    every, is_short = max(1, math.ceil(1.6 * LETTER / wide)), _is_short(columns, wide)
    found = []
    for c, name in enumerate(columns.each):
        if is_short and width_of(name) <= wide:
            found.append(words(left + wide * (c + 0.5), above - 6, name, "middle"))
        elif c % every == 0:
            found.append(turned(left + wide * (c + 0.5) + 3, above - 6, shortened(name, _LONGEST), -60))
    return found


def thumbnails(maps: Sequence[Sequence[Array]], title: str, rows: str, columns: str, unit: str) -> str:
    """Draw many small maps side by side, row by row, each labelled by its numbers."""
    across = max(map(len, maps), default=1)
    size = min(120.0, (WIDTH - 70) / across - 10)
    parts = []
    for r, line in enumerate(maps):
        top = 34 + r * (size + 12)
        parts.append(turned(26, top + size / 2, f"{rows} {r + 1}", -90, "middle"))
        for c, values in enumerate(line):
            left = 40 + c * (size + 10)
            if r == 0:
                parts.append(words(left + size / 2, 22, f"{columns} {c + 1}", "middle"))
            step = size / max(len(values), 1)
            parts.append(f'<rect class="grid" style="fill:none" x="{left:.1f}" y="{top:.1f}" '
                         f'width="{size:.1f}" height="{size:.1f}"/>')  # fmt: skip
            parts.append(paths(values, (left, top, step, step), (0.0, 1.0)))
    bottom = 34 + len(maps) * (size + 12)
    parts.append(scale(40, bottom + 6, 0.0, 1.0, unit))
    return frame("".join(parts), title, WIDTH, bottom + 40)

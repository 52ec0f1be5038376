"""The plots under their former name: they are in `drawing.svg`, which probes and evaluations share."""

from nextword.drawing.svg import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Guide,
    Series,
    bars,
    front,
    histogram,
    lines,
    number,
    scatter,
)

__all__ = [
    "BOTTOM", "COLOURS", "HEIGHT", "LEFT", "RIGHT", "TOP", "WIDTH", "Axis", "Guide", "Series", "bars",
    "front", "histogram", "lines", "number", "scatter",
]  # fmt: skip

"""Two rankings side by side, and many differences with their intervals: pictures of long lists of names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from nextword.core.display import markup
from nextword.drawing.elements import LETTER, frame, words
from nextword.drawing.svg import WIDTH, number

_STEP, _TOP, _BOTTOM = 17, 34, 14
_DOT = 3.2


class Slope(NamedTuple):
    """A name with its two ranks, and a colour of the page; what is written beside it at each side."""

    name: str
    left: float
    right: float
    colour: str = "var(--soft)"
    left_note: str = ""
    right_note: str = ""


class Interval(NamedTuple):
    """A difference with its interval; ``colour`` is one of the page."""

    name: str
    value: float
    low: float
    high: float
    colour: str = "var(--soft)"
    note: str = ""


def slopes(found: Sequence[Slope], title: str, left: str, right: str) -> str:
    """Draw two lists of the same names in two orders, each name joined to itself."""
    names = max((len(f"{each.left_note} {each.name}") for each in found), default=0)
    margin = min(WIDTH * 0.4, 12 + LETTER * names)
    height = _TOP + _STEP * len(found) + _BOTTOM
    parts = [words(margin, 16, left, "end", "label"), words(WIDTH - margin, 16, right, "start", "label")]
    places = (_places([each.left for each in found]), _places([each.right for each in found]))
    for each, first, second in zip(found, *places, strict=True):
        a, b = (_TOP + _STEP * place for place in (first, second))
        tooltip = f"<title>{markup(each.name)}: {each.left:g} and {each.right:g}</title>"
        path = f"M{margin + 8:.1f} {a:.1f}L{WIDTH - margin - 8:.1f} {b:.1f}"
        parts.append(f'<path class="line" style="stroke:{each.colour}" d="{path}">{tooltip}</path>')
        parts.append(words(margin, a + 4, f"{each.name} {each.left_note}".strip(), "end"))
        parts.append(words(WIDTH - margin, b + 4, f"{each.right_note} {each.name}".strip(), "start"))
    return frame("".join(parts), title, WIDTH, height)


def _places(ranks: Sequence[float]) -> list[int]:
    """Return the line of each name, in the order of the ranks; equal ranks keep their order."""
    order = sorted(range(len(ranks)), key=lambda index: ranks[index])
    found = [0] * len(ranks)
    for place, index in enumerate(order):
        found[index] = place
    return found


def intervals(found: Sequence[Interval], title: str, unit: str) -> str:
    """Draw a dot and a whisker for each name, about a line at 0; a whisker that goes on has an arrow."""
    names = max((len(each.name) for each in found), default=0)
    left, right = min(WIDTH * 0.4, 14 + LETTER * names), WIDTH - 70
    low, high = _range([each for each in found if math.isfinite(each.value)])
    room = (high - low) * 0.03

    def across(value: float) -> float:
        inside = min(high + room, max(low - room, value))
        return left + (inside - low + room) / (high - low + 2 * room) * (right - left)

    height = _TOP + _STEP * len(found) + _BOTTOM + 20
    zero, bottom = across(0.0), height - _BOTTOM - 24
    parts = [f'<path class="guide" d="M{zero:.1f} {_TOP - 14}V{bottom:.1f}"/>']
    for row, each in enumerate(found):
        y = _TOP + _STEP * row
        parts.append(words(left - 8, y + 4, each.name, "end"))
        if not math.isfinite(each.value):
            continue
        a, b, at = across(each.low), across(each.high), across(each.value)
        tooltip = (
            f"<title>{markup(each.name)}: {each.value:+.4f}, {each.low:+.4f} to {each.high:+.4f}</title>"
        )
        whisker = (
            f"M{a:.1f} {y}H{b:.1f}{_arrow(a, y, 1) * (each.low < low)}{_arrow(b, y, -1) * (each.high > high)}"
        )
        parts.append(f'<path class="whisker" style="stroke:{each.colour};fill:none" d="{whisker}"/>')
        dot = f"M{at - _DOT:.1f} {y}a{_DOT} {_DOT} 0 1 0 {2 * _DOT} 0a{_DOT} {_DOT} 0 1 0 {-2 * _DOT} 0z"
        parts.append(f'<path style="fill:{each.colour}" d="{dot}">{tooltip}</path>')
        parts.append(words(right + 8, y + 4, each.note, "start"))
    for value in dict.fromkeys((low, 0.0, high)):
        parts.append(words(across(value), bottom + 16, number(round(value, 4)), "middle"))
    parts.append(words((left + right) / 2, height - 4, unit, "middle", "label"))
    return frame("".join(parts), title, WIDTH, height)


def _range(found: Sequence[Interval]) -> tuple[float, float]:
    """Return what is drawn: 0, all dots, and whiskers as far as they leave the dots half of the width."""
    values = [0.0, *(each.value for each in found)]
    low, high = min(values), max(values)
    spare = (high - low) / 2
    ends = [end for each in found for end in (each.low, each.high) if math.isfinite(end)]
    first, last = min([low, *ends]), max([high, *ends])
    if not spare:  # all dots at 0
        return (first, last) if first < last else (-1.0, 1.0)
    return max(first, low - spare), min(last, high + spare)


def _arrow(x: float, y: float, way: int) -> str:
    """Return the head of an arrow that points away from the whisker's middle."""
    return f"M{x + 5 * way:.1f} {y - 4}L{x:.1f} {y}L{x + 5 * way:.1f} {y + 4}"

"""Elements of pictures: text, cells and the frame, and the approximate width of a text.

The fonts are the reader's, so that a picture can show Hindi or Chinese as well as English; a width is an
estimate that leaves some room.
"""

from __future__ import annotations

import unicodedata

from nextword.core.display import markup, printable

LETTER = 6.6  # approximate width of a letter, in pixels
_WIDE, _NARROW, _CAPITAL, _BROADEST, _OTHER = 12.6, 4.2, 8.8, 11.0, 7.4
_SLIM = frozenset("iljtfrI.,:;'`|!()[]{}\" ")
_BROAD = frozenset("mwMW@%—…")
_STEPS = 24  # distinct colour intensities
_SOFT = 0.75  # small shares are drawn a little stronger than they are, on any background
VIRAMA = 9  # combining class of the sign that joins a consonant to the next


def words(x: float, y: float, text: str, anchor: str = "start", kind: str = "tick", more: str = "") -> str:
    """Draw text at a place; ``kind`` is its class in the page's style sheet."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}{more and " " + more}>{markup(text)}</text>'


def turned(x: float, y: float, text: str, angle: int, anchor: str = "start", kind: str = "tick") -> str:
    """Draw rotated text."""
    return words(x, y, text, anchor, kind, f'transform="rotate({angle} {x:.1f} {y:.1f})"')


def frame(inside: str, title: str, width: float, height: float) -> str:
    """Wrap a picture in its <svg> element; screen readers read the title aloud."""
    label = markup(title)
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{label}</title>{inside}</svg>'
    )


def cell(x: float, y: float, width: float, height: float, style: str, tooltip: str = "") -> str:
    """Draw a filled rectangle; ``tooltip`` is shown when the pointer rests on it."""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    if not tooltip:
        return f'<rect style="{style}" {place}/>'
    return f'<rect style="{style}" {place}><title>{markup(tooltip)}</title></rect>'


def ground(share: float) -> str:
    """Return the colour of a number: warm if positive, cold if negative, stronger the larger it is."""
    strength = round(min(1.0, abs(share)) ** _SOFT * _STEPS) / _STEPS * 0.85
    return f"fill:rgba(var(--{'cold' if share < 0 else 'hot'}),{strength:.2f})"


def scale(x: float, y: float, low: float, high: float, unit: str, width: float = 150) -> str:
    """Draw the colour scale: a bar from low to high with its unit."""
    count = 15
    step = width / count
    parts = []
    for place in range(count):
        value = low + (high - low) * (place + 0.5) / count
        parts.append(cell(x + place * step, y, step + 0.3, 10, ground(share_of(value, low, high))))
    parts.append(words(x, y + 23, f"{low:.3g}", "start"))
    parts.append(words(x + width, y + 23, f"{high:.3g}", "end"))
    parts.append(words(x + width + 10, y + 9, unit, "start", "label"))
    return "".join(parts)


def share_of(value: float, low: float, high: float) -> float:
    """Return how strongly to colour a number: -1 … 1 if the range has both signs, else 0 … 1."""
    if low < 0 < high:
        return max(-1.0, min(1.0, value / max(-low, high)))
    if high <= 0 and low < 0:
        return max(-1.0, min(0.0, value / -low))
    return max(0.0, min(1.0, (value - low) / (high - low))) if high > low else 0.0


def width_of(text: str) -> float:
    """Estimate the width of a text in pixels; combining marks take no room."""
    return sum(map(_width, printable(text)))


def _width(character: str) -> float:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.category(character) == "Mc":
        return _NARROW
    if unicodedata.east_asian_width(character) in ("W", "F"):
        return _WIDE
    if character in _SLIM:
        return _NARROW
    if character in _BROAD or character.isupper():
        return _BROADEST if character in _BROAD else _CAPITAL
    return 7.2 if character.isascii() else _OTHER


def shortened(text: str, most: float) -> str:
    """Shorten a text to what fits, with an ellipsis."""
    if width_of(text) <= most:
        return text
    kept = text
    while kept and width_of(kept) + _BROADEST > most:
        kept = kept[:-1]
    return kept + "…"


def glyphs(pieces: list[str]) -> list[list[int]]:
    """Group the tokens that are drawn as one because their letters join: accents, and what a virama joins.

    A token that shows nothing (part of a character) goes with the one that completes it.
    """
    groups: list[list[int]] = []
    before, waits = "", False
    for place, piece in enumerate(pieces):
        is_bound = bool(before and piece) and (
            _is_mark(piece[0]) or unicodedata.combining(before[-1]) == VIRAMA
        )
        if groups and (waits or is_bound):
            groups[-1].append(place)
        else:
            groups.append([place])
        waits = piece == ""
        before = piece or before
    return groups


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc", "Me") or character == "\u200d"

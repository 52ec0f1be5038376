"""What pictures are made of: words, cells and the frame, and about how wide a word is.

The fonts are the reader's, so that a picture holds Hindi or Chinese as well as English; a width is a guess
that leaves some room.
"""

from __future__ import annotations

import unicodedata

from nextword.core.printable import markup, printable

LETTER = 6.6  # about the width of a letter, in pixels
_WIDE, _NARROW, _CAPITAL, _BROADEST, _OTHER = 12.6, 4.2, 8.8, 11.0, 7.4
_SLIM = frozenset("iljtfrI.,:;'`|!()[]{}\" ")
_BROAD = frozenset("mwMW@%—…")
_STEPS = 24  # strengths of a colour that are told apart
_SOFT = 0.75  # small shares are drawn a little stronger than they are, on any ground
VIRAMA = 9  # the combining class of the sign that binds a consonant to the next


def words(x: float, y: float, text: str, anchor: str = "start", kind: str = "tick", more: str = "") -> str:
    """Words at a place; ``kind`` is their class in the page's style."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}{more and " " + more}>{markup(text)}</text>'


def turned(x: float, y: float, text: str, angle: int, anchor: str = "start", kind: str = "tick") -> str:
    """Words that climb."""
    return words(x, y, text, anchor, kind, f'transform="rotate({angle} {x:.1f} {y:.1f})"')


def frame(inside: str, title: str, width: float, height: float) -> str:
    """The picture itself; the title is read aloud by a screen reader."""
    label = markup(title)
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{label}</title>{inside}</svg>'
    )


def cell(x: float, y: float, width: float, height: float, style: str, told: str = "") -> str:
    """A filled rectangle; ``told`` is shown when the pointer rests on it."""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    if not told:
        return f'<rect style="{style}" {place}/>'
    return f'<rect style="{style}" {place}><title>{markup(told)}</title></rect>'


def ground(share: float) -> str:
    """The colour of a number: warm where it is positive, cold where negative, stronger the larger it is."""
    strength = round(min(1.0, abs(share)) ** _SOFT * _STEPS) / _STEPS * 0.85
    return f"fill:rgba(var(--{'cold' if share < 0 else 'hot'}),{strength:.2f})"


def scale(x: float, y: float, low: float, high: float, unit: str, width: float = 150) -> str:
    """What the colours mean: a bar from low to high with its unit."""
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
    """How strongly a number is coloured: -1 … 1 where a range lies on both sides of 0, else 0 … 1."""
    if low < 0 < high:
        return max(-1.0, min(1.0, value / max(-low, high)))
    if high <= 0 and low < 0:
        return max(-1.0, min(0.0, value / -low))
    return max(0.0, min(1.0, (value - low) / (high - low))) if high > low else 0.0


def width_of(text: str) -> float:
    """About how wide a text is drawn, in pixels; marks above and below letters take no room."""
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
    """As much of a text as fits, with a sign that something is missing."""
    if width_of(text) <= most:
        return text
    kept = text
    while kept and width_of(kept) + _BROADEST > most:
        kept = kept[:-1]
    return kept + "…"


def glyphs(pieces: list[str]) -> list[list[int]]:
    """Which pieces are drawn as one, since their letters join: accents, and what a virama binds together.

    A piece that shows nothing (a part of a character) goes with what completes it.
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

"""Pictures as a file of their own, without a page: .svg, or .png through matplotlib.

An SVG file contains the page's style sheet, so that it follows light and dark mode, with the reader's fonts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nextword.drawing.elements import width_of, words
from nextword.drawing.page import style

_PARTS = re.compile(r'<svg [^>]*viewBox="0 0 (\d+) (\d+)"[^>]*>(?:<title>.*?</title>)?(.*)</svg>', re.DOTALL)
_LINE = 17.0


@dataclass(frozen=True)
class Picture:
    """A drawing, its title and its caption."""

    svg: str
    title: str
    caption: str = ""


def standalone(pictures: Sequence[Picture], title: str) -> str:
    """Stack all pictures in one SVG."""
    parts: list[str] = []
    y, widest = 44.0, 720.0
    for picture in pictures:
        found = _PARTS.fullmatch(picture.svg)
        assert found is not None
        width, height = float(found[1]), float(found[2])
        parts.append(words(12, y, picture.title, "start", "value"))
        parts.append(f'<g transform="translate(0 {y + 14:.1f})">{found[3]}</g>')
        y += 14 + height + 14
        for line in wrapped(picture.caption, max(width, 720.0) - 40):
            parts.append(words(12, y, line, "start", "label"))
            y += _LINE
        y += 26
        widest = max(widest, width)
    inside = "".join(parts)
    head = words(12, 20, title, "start", "head")
    return (
        f'<svg role="img" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {widest:.0f} {y:.0f}" '
        f'width="{widest:.0f}" height="{y:.0f}"><style>{style()}svg{{max-width:none;width:auto}}</style>'
        f'<rect style="fill:var(--paper)" x="0" y="0" width="{widest:.0f}" height="{y:.0f}"/>'
        f"{head}{inside}</svg>\n"
    )


def wrapped(text: str, most: float) -> list[str]:
    """Wrap a caption into lines that fit."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer) <= most:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines

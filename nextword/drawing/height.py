"""The height of a page on a screen, estimated from its parts, so that a frame in a notebook fits its content.

A frame without scripts cannot measure itself. Sizes are those of ``page.css``, in pixels; lines are counted
generously, so that the frame is rather a little too high than too low.
"""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser

_BODY, _LINE, _ROW, _SVG = 96, 24, 31, 720  # margins, a line of text, a row of a table, the widest picture
_TEXT, _CELL, _SMALL = 92, 60, 120  # characters in a line of text, of a table's last column, of a caption
_MARGIN = {"h1": 36, "h2": 48, "p": 20, "blockquote": 20, "figure": 30, "table": 24, "li": 6, "summary": 0}
_PER_LINE = {"h1": 50, "h2": 70, "figcaption": _SMALL}
_VIEW = re.compile(r"0 0 ([\d.]+) ([\d.]+)")


def height(page: str) -> int:
    """Return the height of an HTML page in pixels, at the width of a notebook."""
    found = _Heights()
    found.feed(page.partition("<body>")[2] or page)
    return math.ceil(_BODY + found.total)


class _Heights(HTMLParser):
    """Adds up the heights of blocks; closed details count as one line."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0.0
        self._hidden = 0  # how deep in a picture or in closed details
        self._length, self._longest = 0, 0  # characters of the block, and of the longest cell of the row

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("svg", "details"):
            self._hidden += 1
            if self._hidden == 1:
                self.total += _LINE if tag == "details" else _picture(dict(attrs).get("viewbox") or "")
        elif not self._hidden:
            self.total += _MARGIN.get(tag, 0)
            if tag in ("p", "h1", "h2", "blockquote", "figcaption", "td", "th", "li"):
                self._length = 0
            elif tag == "tr":
                self._longest = 0

    def handle_endtag(self, tag: str) -> None:
        if tag in ("svg", "details"):
            self._hidden -= 1
        elif self._hidden:
            return
        elif tag in ("td", "th"):
            self._longest = max(self._longest, self._length)
        elif tag == "tr":
            self.total += _ROW + (_LINE - 2) * (_lines(self._longest, _CELL) - 1)
        elif tag in ("p", "h1", "h2", "blockquote", "figcaption", "li"):
            line = 34 if tag == "h1" else _LINE
            self.total += line * _lines(self._length, _PER_LINE.get(tag, _TEXT))
            self._length = 0

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._length += len(data)


def _picture(view: str) -> float:
    found = _VIEW.match(view)
    return float(found[2]) * _SVG / float(found[1]) if found else 0.0


def _lines(length: int, most: int) -> int:
    return max(1, math.ceil(length / most))

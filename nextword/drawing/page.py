"""A report as one HTML file: no scripts, no network, for light and dark mode, and as plain text.

All text goes through `markup`, so that a corpus cannot inject code into a page.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from nextword.core.display import markup, printable
from nextword.drawing.height import height
from nextword.system.disk import write_file

Cell = str | int | float | bool | None

_NUMBER = re.compile(r"[+-]?[\d.,]+( ± [\d.,]+)?( [kMG])?|-|")  # as formatted for people, or nothing
_WORDS = 24  # characters of a cell from which it is taken for a sentence
CLOSING = "\n</body></html>\n"  # behind the last part of a page
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


@dataclass(frozen=True)
class Table:
    """Rows with a header."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""

    def html(self) -> str:
        """Format as an HTML table; numbers are right-aligned, and only sentences are broken into lines."""
        kind = [
            ' class="n"' if number else ' class="t"' if place and self._is_text(place) else ""
            for place, number in enumerate(self._numbers())
        ]
        head = "".join(f"<th{k}>{markup(name)}</th>" for name, k in zip(self.columns, kind, strict=True))
        lines = (
            "".join(f"<td{k}>{markup(shown(cell))}</td>" for cell, k in zip(row, kind, strict=True))
            for row in self.rows
        )
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        title = f"<p>{markup(self.title)}</p>" if self.title else ""
        return f'{title}<div class="wide"><table><tr>{head}</tr>{body}</table></div>'

    def __str__(self) -> str:
        """Format as lines for a terminal."""
        cells = [list(self.columns), *([printable(shown(cell)) for cell in row] for row in self.rows)]
        widths = [max(len(line[i]) for line in cells) for i in range(len(self.columns))]
        numbers = self._numbers()
        text = [
            "  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(line, widths, numbers, strict=True)
            ).rstrip()
            for line in cells
        ]
        return "\n".join([*([self.title] if self.title else []), *text])

    def _numbers(self) -> list[bool]:
        """Return which columns contain only numbers, formatted or not: they are right-aligned."""
        return [all(_is_number(row[i]) for row in self.rows) for i in range(len(self.columns))]

    def _is_text(self, column: int) -> bool:
        return any(len(shown(row[column])) > _WORDS for row in self.rows)

    def to_json(self) -> list[dict[str, Cell]]:
        """Return one object per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass
class Page:
    """A page assembled part by part."""

    title: str
    parts: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        """Start a new section."""
        self.parts.append(f"<h2>{markup(text)}</h2>")

    def text(self, text: str, soft: bool = False) -> None:
        """Add a paragraph."""
        self.parts.append(f"<p{' class=soft' if soft else ''}>{markup(text)}</p>")

    def verdict(self, holds: bool | None, text: str) -> None:
        """Add the one sentence that matters; None: it neither held nor failed."""
        kind = " open" if holds is None else "" if holds else " no"
        self.parts.append(f'<p class="verdict{kind}">{markup(text)}</p>')

    def picture(self, svg: str, caption: str, table: Table | None = None) -> None:
        """Add a picture from `svg`, its caption, and its numbers if given."""
        numbers = f"<details><summary>the numbers</summary>{table.html()}</details>" if table else ""
        self.parts.append(f"<figure>{svg}<figcaption>{markup(caption)}</figcaption>{numbers}</figure>")

    def table(self, table: Table) -> None:
        """Add a table."""
        self.parts.append(table.html())

    def quotes(self, name: str, texts: Sequence[str]) -> None:
        """Add texts under a name."""
        quoted = "".join(f"<blockquote>{markup(text)}</blockquote>" for text in texts)
        self.parts.append(f"<p><b>{markup(name)}</b></p>{quoted}")

    def heat(self, heads: Sequence[str], rows: Mapping[str, Sequence[float | None]], most: float) -> None:
        """Add numbers on a background that is stronger the larger they are; None is shown as a dash.

        The smallest number of a column is bold if there are several rows.
        """
        head = "".join(f"<th>{markup(name)}</th>" for name in ("", *heads))
        least = [_least(column) for column in zip(*rows.values(), strict=True)] if len(rows) > 1 else []
        body = "".join(
            f"<tr><td>{markup(name)}</td>"
            + "".join(_warm(value, most, place < len(least) and value == least[place])
                      for place, value in enumerate(values))
            + "</tr>"
            for name, values in rows.items()
        )  # fmt: skip
        self.parts.append(f'<div class="wide"><table class="heat"><tr>{head}</tr>{body}</table></div>')

    def html(self) -> str:
        """Return the whole file."""
        return self.opening() + "\n".join(self.parts) + CLOSING

    def opening(self) -> str:
        """Return the file up to its first part, for a page that is written part by part."""
        title = markup(self.title)
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{title}</title><style>{style()}</style></head>\n<body><h1>{title}</h1>\n"
        )

    def fragment(self) -> str:
        """Return the page in an iframe of its height, for a notebook: so its style stays inside."""
        page = self.html()
        frame = f"width:100%;height:{height(page)}px;border:0"
        return f'<iframe sandbox style="{frame}" srcdoc="{html.escape(page, quote=True)}"></iframe>'

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file atomically."""
        return write_file(path, self.html())


@cache
def style() -> str:
    """Return the style sheet shared by all pages and pictures."""
    return resources.files("nextword.drawing").joinpath("page.css").read_text(encoding="utf-8")


def shown(cell: Any) -> str:
    """Format a cell for people."""
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        if cell in (float("inf"), float("-inf")) or cell != cell:
            return "infinite" if cell > 0 else "-"
        return f"{cell:,.0f}" if abs(cell) >= 10_000 else f"{cell:,.4g}"
    return str(cell)


def _is_number(cell: Cell) -> bool:
    return not isinstance(cell, str) or _NUMBER.fullmatch(cell) is not None


def _least(values: Sequence[float | None]) -> float:
    return min((value for value in values if value is not None), default=float("nan"))


def _warm(value: float | None, most: float, is_best: bool = False) -> str:
    if value is None:
        return "<td>-</td>"
    strength = min(1.0, max(0.0, value / most)) * 0.75 if most > 0 else 0.0
    shown = markup(f"{abs(value):.1f}")
    shown = f"<b>{shown}</b>" if is_best else shown
    return f'<td style="background:rgba(var(--hot),{strength:.2f})">{shown}</td>'

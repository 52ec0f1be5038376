"""What a probe saw: arrays with names, and the same as pictures; it prints, saves and shows itself."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nextword.core.errors import ConfigError
from nextword.drawing import standalone
from nextword.drawing.page import Cell, Page, Table
from nextword.system.disk import write_file

Array = np.ndarray[Any, np.dtype[Any]]
ENDINGS = (".html", ".svg", ".png", ".json")
_ROWS = 40  # of a table on the terminal


@dataclass(frozen=True)
class Figure:
    """A drawing that is clear by itself: a title that says what is seen, and its numbers."""

    title: str
    svg: str
    caption: str = ""
    table: Table | None = None


@dataclass(frozen=True)
class ProbeResult:
    """One look at a model. ``arrays`` hold every number, ``names`` what their axes stand for."""

    what: str
    run: str
    title: str
    sentence: str  # what matters most, with its number
    slide: str  # deck and slide title
    arrays: Mapping[str, Array]
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    parts: tuple[Figure | Table, ...] = ()

    def __repr__(self) -> str:
        return f"<ProbeResult {self.what} of {self.run}: {self.sentence}>"

    def page(self) -> Page:
        """Return the one-file report."""
        return page([self])

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write .html, .svg, .png or .json, by the ending; returns the path."""
        return save([self], path)[0]

    def to_json(self) -> dict[str, Any]:
        """Return every number; what is not finite is null."""
        return {
            "what": self.what,
            "run": self.run,
            "title": self.title,
            "sentence": self.sentence,
            "slide": self.slide,
            "arrays": {name: plain(array) for name, array in self.arrays.items()},
            "names": {name: list(each) for name, each in self.names.items()},
        }

    def __str__(self) -> str:
        summary = [f"{self.title}\n{self.sentence}"]
        for part in self.parts:
            table = part if isinstance(part, Table) else part.table
            if table is not None:
                name = part.title if isinstance(part, Figure) else ""
                summary.append("\n".join([*([name] if name else []), _short(table)]))
        return "\n\n".join(summary)

    def _repr_html_(self) -> str:
        return self.page().fragment()


def page(found: Sequence[ProbeResult], left_out: Sequence[str] = ()) -> Page:
    """Put all results on one page, and a sentence for each probe that had none."""
    made = Page(found[0].title if len(found) == 1 else f"The inside of {found[0].run}")
    for seen in found:
        if len(found) > 1:
            made.heading(seen.title)
        made.verdict(True, seen.sentence)
        made.text(f"[{seen.slide}] · {seen.run}", soft=True)
        for part in seen.parts:
            if isinstance(part, Table):
                made.table(part)
            else:
                made.heading(part.title)
                made.picture(part.svg, part.caption, part.table)
    for sentence in left_out:
        made.text(sentence, soft=True)
    return made


def save(
    found: Sequence[ProbeResult], path: str | os.PathLike[str], left_out: Sequence[str] = ()
) -> tuple[Path, str]:
    """Write what was seen by the ending of the path; also one sentence where something is missing in it.

    ``left_out``: sentences about probes that saw nothing; a page shows them.
    """
    ending = check_ending(path)
    if ending == ".html":
        return page(found, left_out).save(path), ""
    if ending == ".json":
        values = [seen.to_json() for seen in found]
        text = json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False, allow_nan=False)
        return write_file(path, (text + "\n").encode()), ""
    svg = standalone.standalone(_pictures(found), page(found).title)
    if ending == ".svg":
        return write_file(path, svg.encode()), ""
    from nextword.drawing import raster  # needs matplotlib

    data, summary = raster.png(svg)
    return write_file(path, data), summary


def check_ending(path: str | os.PathLike[str]) -> str:
    """Return the ending, if we can write it."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ConfigError(
            f"'--out' is '{os.fspath(path)}', which ends in '{ending or 'nothing'}'; "
            f"it must end in one of: {', '.join(ENDINGS)}"
        )
    return ending


def _pictures(found: Sequence[ProbeResult]) -> list[standalone.Picture]:
    pictures = [
        standalone.Picture(part.svg, part.title, part.caption)
        for seen in found for part in seen.parts if isinstance(part, Figure)
    ]  # fmt: skip
    if not pictures:
        raise ConfigError(
            f"'{found[0].what}' has a table and no picture; write it to a file that ends in .html or .json"
        )
    return pictures


def _short(table: Table) -> str:
    rows = table.rows[:_ROWS]
    more = len(table.rows) - len(rows)
    text = str(Table(table.columns, rows, table.title))
    return f"{text}\n… and {more:,} more rows (--out FILE.json has all numbers)" if more else text


def row_of(name: str, values: Iterable[float | None]) -> tuple[Cell, ...]:
    """Return a row of a table: a name and its numbers."""
    return (name, *values)


def plain(array: Any) -> Any:
    """Return an array as nested lists of plain numbers; complex ones as pairs."""
    array = np.asarray(array)
    if np.iscomplexobj(array):
        array = np.stack([array.real, array.imag], axis=-1)
    return _finite(array.tolist())


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

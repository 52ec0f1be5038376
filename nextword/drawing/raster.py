"""Our pictures as PNG, through matplotlib, which draws the few elements they are made of.

SVG is the native format; a PNG is for slides and papers. Its fonts are matplotlib's: if one lacks the
letters of a script, a note says so, and the SVG has them.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from typing import Any
from xml.etree import ElementTree

from nextword.core.errors import MissingPart
from nextword.drawing.page import style

_SCALE = 100.0  # pixels per inch
_NUMBER = re.compile(r"-?\d*\.?\d+(?:e-?\d+)?")
_COMMAND = re.compile(r"([MLHVhvlamz])([^MLHVhvlamz]*)")
_FONTS = (
    "Noto Sans", "DejaVu Sans", "Noto Sans Devanagari", "Lohit Devanagari", "FreeSans", "Noto Sans CJK SC",
    "Noto Sans CJK JP", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Noto Sans Arabic",
)  # fmt: skip


def png(svg: str, dots: float = 160.0) -> tuple[bytes, str]:
    """Return the bytes of the file, and a note if letters are missing from it."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingPart("matplotlib", "plots", "a .png picture") from error
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    with warnings.catch_warnings(record=True) as caught, matplotlib.rc_context({"font.family": _fonts()}):
        warnings.simplefilter("always")
        figure = Figure(figsize=(width / _SCALE, height / _SCALE), dpi=dots)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        axes.axis("off")
        Pen(axes, _colours()).draw(root, 0.0, 0.0)
        out = io.BytesIO()
        figure.savefig(out, format="png", dpi=dots)
    missing = [str(each.message) for each in caught if "Glyph" in str(each.message)]
    note = f"matplotlib's fonts lack {len(missing)} letters of this picture; use a .svg or .html file"
    return out.getvalue(), note if missing else ""


def _fonts() -> list[str]:
    """Return the fonts of our list that this machine has."""
    from matplotlib import font_manager

    there = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in _FONTS if name in there] or ["DejaVu Sans"]


def _colours() -> dict[str, str]:
    """Return the variables of the page's style sheet, for light mode."""
    light = style().partition("@media")[0]
    return dict(re.findall(r"(--[\w-]+):([^;}]+)", light))


class Pen:
    """Draws elements of our SVG on matplotlib axes, from back to front."""

    def __init__(self, axes: Any, colours: dict[str, str]) -> None:
        self.axes, self.colours, self.order = axes, colours, 1.0

    def draw(self, element: Any, x: float, y: float) -> None:
        """Draw an element and its children, shifted by x and y."""
        self.order += 1e-4
        kind = element.tag.rpartition("}")[2]
        if kind in ("title", "style"):
            return
        if kind == "text":
            self._text(element, x, y)
        elif kind == "rect":
            self._rect(element, x, y)
        elif kind == "circle":
            self._circle(element, x, y)
        elif kind == "line":
            self._line(element, x, y)
        elif kind == "path":
            self._path(element, x, y)
        elif kind in ("g", "svg"):
            moved = [float(each) for each in _NUMBER.findall(element.get("transform", ""))]
            for child in element:
                self.draw(child, x + (moved[0] if moved else 0.0), y + (moved[1] if len(moved) > 1 else 0.0))

    def _look(self, element: Any) -> dict[str, str]:
        """Return the style of an element, from its class and its style attribute."""
        found = dict(_CLASSES.get(element.get("class", "").partition(" ")[0], {}))
        for part in element.get("style", "").split(";"):
            name, colon, value = part.partition(":")
            if colon:
                found[name.strip()] = value.strip()
        if element.get("stroke-dasharray"):
            found["stroke-dasharray"] = element.get("stroke-dasharray")
        return found

    def _colour(self, value: str) -> Any:
        """Convert a colour to matplotlib's form: a name, or red, green, blue and alpha."""
        value = re.sub(r"var\((--[\w-]+)\)", lambda match: self.colours.get(match[1], "#000"), value)
        if value.startswith("rgba"):
            red, green, blue, strength = (float(each) for each in _NUMBER.findall(value))
            return red / 255, green / 255, blue / 255, strength
        return value

    def _paint(self, look: dict[str, str], default: str) -> dict[str, Any]:
        stroke, fill = look.get("stroke", "none"), look.get("fill", default)
        dashes = [float(each) for each in _NUMBER.findall(look.get("stroke-dasharray", ""))]
        thick = float(look.get("stroke-width", "1").removesuffix("px")) * 0.72
        painted: dict[str, Any] = {
            "facecolor": self._colour(fill), "edgecolor": self._colour(stroke), "zorder": self.order,
            "linewidth": thick if stroke != "none" else 0.0,
        }  # fmt: skip
        if "fill-opacity" in look:
            painted["alpha"] = float(look["fill-opacity"])
        if dashes:
            painted["linestyle"] = (0, tuple(each / max(thick, 0.5) for each in dashes))
        return painted

    def _rect(self, element: Any, x: float, y: float) -> None:
        from matplotlib.patches import Rectangle

        left, top, wide, tall = (float(element.get(name)) for name in ("x", "y", "width", "height"))
        self.axes.add_patch(
            Rectangle((x + left, y + top), wide, tall, **self._paint(self._look(element), "#000"))
        )

    def _circle(self, element: Any, x: float, y: float) -> None:
        from matplotlib.patches import Circle

        cx, cy, r = (float(element.get(name)) for name in ("cx", "cy", "r"))
        self.axes.add_patch(Circle((x + cx, y + cy), r, **self._paint(self._look(element), "#000")))

    def _line(self, element: Any, x: float, y: float) -> None:
        x1, x2, y1, y2 = (float(element.get(name)) for name in ("x1", "x2", "y1", "y2"))
        self._stroke([(x + x1, y + y1), (x + x2, y + y2)], [1, 2], self._look(element) | {"fill": "none"})

    def _path(self, element: Any, x: float, y: float) -> None:
        points, codes = outline(element.get("d", ""))
        self._stroke([(x + a, y + b) for a, b in points], codes, self._look(element))

    def _stroke(self, points: list[tuple[float, float]], codes: list[int], look: dict[str, str]) -> None:
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        if points:
            self.axes.add_patch(PathPatch(Path(points, codes), **self._paint(look, "#000")))

    def _text(self, element: Any, x: float, y: float) -> None:
        look = self._look(element)
        at_x, at_y = float(element.get("x")), float(element.get("y"))
        turned = _NUMBER.findall(element.get("transform", ""))
        anchor = {"start": "left", "middle": "center", "end": "right"}[element.get("text-anchor", "start")]
        size, colour = float(look.get("font-size", "12")), look.get("fill", "var(--ink)")
        self.axes.text(
            x + at_x, y + at_y, element.text or "", ha=anchor, va="baseline", zorder=self.order + 1,
            rotation=-float(turned[0]) if turned else 0.0, rotation_mode="anchor", parse_math=False,
            fontsize=size * 0.72, color=self._colour(colour), fontweight=look.get("font-weight", "normal"),
        )  # fmt: skip


_CLASSES = {
    "label": {"fill": "var(--soft)"},
    "value": {"font-weight": "bold"},
    "head": {"font-weight": "bold", "font-size": "15"},
    "small": {"font-size": "9.5", "fill": "var(--soft)"},
    "grid": {"stroke": "var(--rule)", "fill": "none"},
    "axis": {"stroke": "var(--soft)", "fill": "none"},
    "line": {"fill": "none", "stroke-width": "2"},
    "bar": {"fill": "var(--c0)"},
    "whisker": {"stroke": "var(--ink)", "stroke-width": "2", "fill": "none"},
    "front": {"fill": "none", "stroke": "var(--soft)", "stroke-width": "1.5", "stroke-dasharray": "3 4"},
    "guide": {"fill": "none", "stroke": "var(--soft)", "stroke-width": "1.2", "stroke-dasharray": "6 4"},
}


def outline(path: str) -> tuple[list[tuple[float, float]], list[int]]:
    """Return the points of a path and matplotlib's codes: 1 move to, 2 line to, 79 close.

    Our paths have straight lines and half circles, which are drawn in small steps.
    """
    points: list[tuple[float, float]] = []
    codes: list[int] = []
    x = y = 0.0
    for command, rest in _COMMAND.findall(path):
        numbers = [float(each) for each in _NUMBER.findall(rest)]
        if command == "z":
            points.append((x, y))
            codes.append(79)
            continue
        if command == "a":  # r r 0 1 0 dx 0: half a circle
            radius, dx = numbers[0], numbers[5]
            centre, sign = x + dx / 2, -1.0 if dx > 0 else 1.0
            for step in range(1, 9):
                angle = math.pi * step / 8
                points.append((centre + sign * radius * math.cos(angle), y - sign * radius * math.sin(angle)))
                codes.append(2)
            x += dx
            continue
        if command in "hv":
            x, y = (x + numbers[0], y) if command == "h" else (x, y + numbers[0])
        elif command in "HV":
            x, y = (numbers[0], y) if command == "H" else (x, numbers[0])
        elif command in "lm":
            x, y = x + numbers[0], y + numbers[1]
        for place in range(0, len(numbers) - 1, 2) if command in "ML" else (0,):
            if command in "ML":
                x, y = numbers[place], numbers[place + 1]
            points.append((x, y))
            codes.append(1 if command in "Mm" and place == 0 else 2)
    return points, codes

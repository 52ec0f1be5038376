"""Plots as text: lines, bars and points in SVG, with axes, units and legends.

Colours are Okabe and Ito's (2008), which colour-blind readers can distinguish; every series also has its
own mark and dash. They are CSS variables of `page`, so that a picture follows light and dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nextword.core.display import markup
from nextword.drawing.elements import LETTER, frame, words

WIDTH, HEIGHT = 720, 380
LEFT, RIGHT, TOP, BOTTOM = 74, 168, 16, 52
COLOURS = 8  # the variables --c0 … --c7 of the page
_DASHES = ("", "7 4", "2 3", "9 3 2 3")


@dataclass(frozen=True)
class Series:
    """A named series of points; a point whose y is not finite is skipped."""

    name: str
    points: tuple[tuple[float, float], ...]
    look: int | None = None  # colour and mark; None: by its position among the series
    named: bool = True  # whether it is in the legend; a model's second seed need not be
    spreads: tuple[float, ...] = ()  # length of the whisker above and below each point
    faint: bool = False  # a thin grey line without marks: one of many

    @property
    def real(self) -> list[tuple[float, float]]:
        """The points that can be drawn."""
        return [(x, y) for x, y in self.points if math.isfinite(x) and math.isfinite(y)]


@dataclass(frozen=True)
class Axis:
    """One axis: what it shows and in which unit; logarithmic if the numbers span powers of ten."""

    label: str
    log: bool = False
    zero: bool = False  # the axis starts at 0
    names: tuple[tuple[float, str], ...] = ()  # its ticks, if they are not plain numbers


@dataclass(frozen=True)
class Guide:
    """A thin line across a picture: a number to compare with, such as chance or a slide's value."""

    at: float
    name: str
    upright: bool = False  # at an x; else at a y


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    first: float  # where low is drawn, in pixels
    last: float
    log: bool

    def __call__(self, value: float) -> float:
        low, high, value = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.first + share * (self.last - self.first)


def lines(series: Sequence[Series], title: str, x: Axis, y: Axis, guides: Sequence[Guide] = ()) -> str:
    """Draw points joined by lines, one line per series; the legend is at the right."""
    return _plot(series, title, x, y, joined=True, guides=guides)


def scatter(
    series: Sequence[Series], title: str, x: Axis, y: Axis, front: Sequence[tuple[float, float]] = ()
) -> str:
    """Draw points, each with its name beside it; `front` is drawn as steps through the best of them."""
    return _plot(series, title, x, y, joined=False, front=front)


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the Pareto front, smaller being better (Pareto 1906), sorted by the first number."""
    found: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if not found or y < found[-1][1]:
            found.append((x, y))
    return found


def bars(
    values: Sequence[tuple[str, float]],
    title: str,
    unit: str,
    notes: Sequence[str] = (),
    spreads: Sequence[float] = (),
) -> str:
    """Draw one horizontal bar per name, with its number beside it, or its note instead.

    `spreads`: the length of the whisker to either side.
    """
    finite = [value for _, value in values if math.isfinite(value)]
    largest = max(finite, default=0.0) or 1.0
    left = 24 + LETTER * max((len(name) for name, _ in values), default=0)
    room, step = WIDTH - left - 150, 26
    height = TOP + step * len(values) + 30
    parts = []
    for row, (name, value) in enumerate(values):
        middle = TOP + step * row + step / 2
        note = notes[row] if row < len(notes) else ""
        shown = note or number(value)
        width = max(0.0, room * value / largest) if math.isfinite(value) else 0.0
        parts.append(words(left - 8, middle + 4, name, "end"))
        place = f'x="{left:.1f}" y="{middle - 9:.1f}" width="{width:.1f}" height="18"'
        parts.append(f'<rect class="bar" {place}><title>{markup(name)}: {markup(shown)}</title></rect>')
        spread = room * (spreads[row] if row < len(spreads) else 0.0) / largest
        if spread > 0:
            at = left + width
            parts.append(f'<path class="whisker" d="M{at - spread:.1f} {middle:.1f}h{2 * spread:.1f}"/>')
        parts.append(words(left + width + spread + 7, middle + 4, shown, "start", "value"))
    parts.append(f'<line class="axis" x1="{left:.1f}" x2="{left:.1f}" y1="{TOP}" y2="{height - 30:.1f}"/>')
    parts.append(words(left, height - 8, unit, "start", "label"))
    return frame("".join(parts), title, WIDTH, height)


def number(value: float) -> str:
    """Format a number for readers: three to four significant figures, with k, M and G for large ones."""
    if not math.isfinite(value):
        return "infinite" if value > 0 else "none"
    if abs(value) >= 1e12 or 0 < abs(value) < 1e-3:
        figures, _, power = f"{value:.2e}".partition("e")
        return f"{float(figures):g}e{int(power)}"
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / {'G': 1e9, 'M': 1e6, 'k': 1e3}[letter]:.3g} {letter}"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _plot(
    series: Sequence[Series],
    title: str,
    x: Axis,
    y: Axis,
    joined: bool,
    front: Sequence[tuple[float, float]] = (),
    guides: Sequence[Guide] = (),
) -> str:
    points = [point for each in series for point in each.real]
    if not points:
        return frame(words(WIDTH / 2, 40, "nothing finite to draw", "middle", "label"), title, WIDTH, 70)
    beside = [guide.at for guide in guides if guide.upright]
    above = [guide.at for guide in guides if not guide.upright] + [y for each in series for y in _ends(each)]
    across = _scale([*(p[0] for p in points), *beside], x, LEFT, WIDTH - RIGHT)
    up = _scale([*(p[1] for p in points), *above], y, HEIGHT - BOTTOM, TOP)
    parts = [_grid(across, up, x, y), *(_guide(guide, across, up) for guide in guides)]
    parts += [_steps(front, across, up)] if len(front) > 1 else []
    parts += [_drawn(index, each, across, up, joined) for index, each in enumerate(series)]
    names = _legend(series, up) if joined else _labels(series, across, up)
    return frame("".join(parts) + names, title, WIDTH, HEIGHT)


def _scale(values: Sequence[float], axis: Axis, first: float, last: float) -> _Scale:
    if axis.log:
        values = [value for value in values if value > 0] or [1.0]
    low, high = min(values), max(values)
    if axis.zero and not axis.log:
        low, high = min(0.0, low), max(0.0, high)
    if axis.log:
        room = (high / low) ** 0.04 if high > low else 2.0
        return _Scale(low / room, high * room, first, last, True)
    room = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    return _Scale(low if axis.zero and low == 0 else low - room, high + room, first, last, False)


def _grid(across: _Scale, up: _Scale, x: Axis, y: Axis) -> str:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value, name in _ticks(up, y):
        at = up(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(words(LEFT - 8, at + 4, name, "end"))
    for value, name in _ticks(across, x):
        at = across(value)
        parts.append(f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{bottom}" y2="{bottom + 5}"/>')
        parts.append(words(at, bottom + 20, name, "middle"))
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>')
    parts.append(words((LEFT + right) / 2, HEIGHT - 10, x.label, "middle", "label"))
    middle = (TOP + bottom) / 2
    label = markup(y.label)
    turned = f'transform="rotate(-90 16 {middle:.0f})" text-anchor="middle"'
    parts.append(f'<text class="label" x="16" y="{middle:.0f}" {turned}>{label}</text>')
    return "".join(parts)


def _ticks(scale: _Scale, axis: Axis) -> list[tuple[float, str]]:
    """Return about five round numbers, or the axis's own names."""
    if axis.names:
        return [(value, name) for value, name in axis.names if scale.low <= value <= scale.high]
    if axis.log:
        return [(value, number(value)) for value in _powers(scale.low, scale.high)]
    step = _round_step((scale.high - scale.low) / 5)
    first = math.ceil(scale.low / step - 1e-9)
    count = int((scale.high - first * step) / step + 1e-9) + 1
    return [(value, number(value)) for value in (round((first + i) * step, 12) for i in range(count))]


def _powers(low: float, high: float) -> list[float]:
    """Return the powers of ten in a range: with 2 and 5 between them if few, only some if many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside = [10.0**n for n in powers if low <= 10.0**n <= high]
    if len(inside) > 7:
        return inside[:: math.ceil(len(inside) / 7)]
    if len(inside) > 2:
        return inside
    found = [m * 10.0**n for n in powers for m in (1, 2, 5) if low <= m * 10.0**n <= high]
    return found if len(found) > 1 else [low, high]


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= step * (1 - 1e-9))


def _steps(points: Sequence[tuple[float, float]], across: _Scale, up: _Scale) -> str:
    """Draw steps from point to point: first along, then down."""
    first, *others = [(across(x), up(y)) for x, y in points]
    path = f"M{first[0]:.1f} {first[1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in others)
    return f'<path class="front" d="{path}"/>'


def _ends(series: Series) -> list[float]:
    """Return where the whiskers end."""
    pairs = zip(series.points, series.spreads, strict=False)
    ends = [y + sign * spread for (_, y), spread in pairs for sign in (-1, 1)]
    return [end for end in ends if math.isfinite(end)]


def _whiskers(series: Series, across: _Scale, up: _Scale, colour: str) -> str:
    parts = []
    for (x, y), spread in zip(series.points, series.spreads, strict=False):
        if (x, y) in _drawable(series, across, up) and spread > 0 and math.isfinite(spread):
            low, high = up(max(y - spread, up.low)), up(min(y + spread, up.high))
            path = f"M{across(x):.1f} {low:.1f}V{high:.1f}m-4 0h8M{across(x) - 4:.1f} {low:.1f}h8"
            parts.append(f'<path class="whisker" style="stroke:{colour}" d="{path}"/>')
    return "".join(parts)


def _guide(guide: Guide, across: _Scale, up: _Scale) -> str:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    if guide.upright:
        at = across(guide.at)
        end = "start" if at < (LEFT + right) / 2 else "end"
        shift = 5 if end == "start" else -5
        line = f'<path class="guide" d="M{at:.1f} {TOP}V{bottom}"/>'
        return line + words(at + shift, TOP + 10, guide.name, end, "name label")
    at = up(guide.at)
    below = 14 if at < TOP + 16 else -5
    line = f'<path class="guide" d="M{LEFT} {at:.1f}H{right}"/>'
    return line + words(LEFT + 6, at + below, guide.name, "start", "name label")


def _drawn(index: int, series: Series, across: _Scale, up: _Scale, joined: bool) -> str:
    if series.faint:
        return _faint(series, across, up)
    index = index if series.look is None else series.look
    places = [(across(x), up(y), x, y) for x, y in _drawable(series, across, up)]
    colour = f"var(--c{index % COLOURS})"
    parts = []
    if joined and len(places) > 1:
        dash = _DASHES[index // 2 % len(_DASHES)]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y, _, _ in places)
        parts.append(f'<path class="line" style="stroke:{colour}" stroke-dasharray="{dash}" d="{path}"/>')
    parts.append(_whiskers(series, across, up, colour))
    if len(places) <= 60:
        for x, y, a, b in places:
            tooltip = f"<title>{markup(series.name)}: {number(a)}, {number(b)}</title>"
            parts.append(f'<path style="fill:{colour}" d="{_mark(index, x, y)}">{tooltip}</path>')
    return f"<g>{''.join(parts)}</g>"


def _faint(series: Series, across: _Scale, up: _Scale) -> str:
    path = "M" + "L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in _drawable(series, across, up))
    tooltip = f"<title>{markup(series.name)}</title>"
    return f'<path class="faint" d="{path}">{tooltip}</path>'


def _drawable(series: Series, across: _Scale, up: _Scale) -> list[tuple[float, float]]:
    """Return the points that can be drawn: a logarithmic axis has no place for 0 and less."""
    return [(x, y) for x, y in series.real if (y > 0 or not up.log) and (x > 0 or not across.log)]


def _mark(index: int, x: float, y: float) -> str:
    """Return the path of a disc, a square, a triangle or a diamond."""
    r = 4.2
    shapes = (
        f"M{x - r:.1f} {y:.1f}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0z",
        f"M{x - r:.1f} {y - r:.1f}h{2 * r}v{2 * r}h{-2 * r}z",
        f"M{x:.1f} {y - r - 1:.1f}l{r + 1} {2 * r}h{-2 * r - 2}z",
        f"M{x:.1f} {y - r - 1:.1f}l{r + 1} {r + 1}l{-r - 1} {r + 1}l{-r - 1} {-r - 1}z",
    )
    return shapes[(index + index // COLOURS) % len(shapes)]  # the ninth has the first's colour, not its mark


def _legend(series: Sequence[Series], up: _Scale) -> str:
    """Draw the names at the right, near where each line ends, moved apart if they would overlap."""
    left, step = WIDTH - RIGHT + 14, 17.0
    wanted = sorted(
        ((up(each.real[-1][1]) if each.real and (each.real[-1][1] > 0 or not up.log) else up.first, index)
         for index, each in enumerate(series) if each.named)
    )  # fmt: skip
    places: list[float] = []
    for at, _ in wanted:
        places.append(max(at, places[-1] + step if places else TOP + 6))
    over = max(0.0, places[-1] - (HEIGHT - BOTTOM)) if places else 0.0
    for row in range(len(places) - 1, -1, -1):
        most = places[row + 1] - step if row + 1 < len(places) else HEIGHT - BOTTOM
        places[row] = min(places[row], most) if over else places[row]
    parts = []
    for at, (_, index) in zip(places, wanted, strict=True):
        name = series[index].name + ("" if series[index].real else " (not finite)")
        look = series[index].look
        look = index if look is None else look
        parts.append(f'<path style="fill:var(--c{look % COLOURS})" d="{_mark(look, left, at)}"/>')
        parts.append(words(left + 10, at + 4, name, "start"))
    return "".join(parts)


def _labels(series: Sequence[Series], across: _Scale, up: _Scale) -> str:
    """Draw the names beside their points: right, left, above or below, where there is room."""
    drawn = [(x, y, each.name) for each in series if each.named for x, y in _drawable(each, across, up)]
    points = [(across(x), up(y), name) for x, y, name in drawn]
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y, _ in points]
    parts = []
    for x, y, name in points:
        width = LETTER * len(name)
        spots = [(x + 9, y + 4), (x - 9 - width, y + 4), (x - width / 2, y - 9), (x - width / 2, y + 18)]
        spots += [(x + 9, y + shift) for shift in (16, -10, 28, -22)]
        boxes = [(left, base - 11, left + width, base + 3) for left, base in spots]
        inside = [box for box in boxes if box[0] > LEFT and box[2] < WIDTH and box[3] < HEIGHT - BOTTOM]
        free = [box for box in inside if not any(_touch(box, other) for other in taken)]
        left, _, _, low = box = (free or boxes)[0]
        taken.append(box)
        parts.append(words(left, low - 3, name, "start", "name"))
    return "".join(parts)


def _touch(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def histogram(values: Iterable[float], width: float) -> tuple[tuple[float, float], ...]:
    """Return the share of the values in each bin of the given width, at the bins' centres."""
    counted: dict[int, int] = {}
    total = 0
    for value in values:
        total += 1
        counted[math.floor(value / width)] = counted.get(math.floor(value / width), 0) + 1
    if not total:
        return ()
    pieces = range(min(counted), max(counted) + 1)
    return tuple(((piece + 0.5) * width, counted.get(piece, 0) / total) for piece in pieces)

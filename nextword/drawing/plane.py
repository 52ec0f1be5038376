"""Complex numbers in their plane, with the unit circle: what lies outside grows, what lies inside decays.

[XMU "The gradient may be a trouble maker": powers of W_h; what matters is |λ|]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from nextword.core.display import markup
from nextword.drawing.elements import frame, turned, words
from nextword.drawing.svg import COLOURS

SIZE, LEFT, TOP = 400.0, 64.0, 14.0


def plane(groups: Sequence[tuple[str, Sequence[complex]]], title: str) -> str:
    """Draw every number as a point, the groups in their colours; both axes have the same scale."""
    points = [number for _, numbers in groups for number in numbers]
    reach = 1.12 * max([1.0, *(abs(number) for number in points)])

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + SIZE * (x + reach) / (2 * reach), TOP + SIZE * (reach - y) / (2 * reach)

    (cx, cy), radius = at(0, 0), SIZE / (2 * reach)
    parts = [
        f'<path class="grid" style="fill:none" d="M{LEFT} {cy:.1f}h{SIZE}M{cx:.1f} {TOP}v{SIZE}"/>',
        f'<rect class="axis" x="{LEFT}" y="{TOP}" width="{SIZE}" height="{SIZE}"/>',
        f'<circle class="front" cx="{cx:.1f}" cy="{cy:.1f}" r="{radius:.1f}"/>',
    ]
    for look, (name, numbers) in enumerate(groups):
        colour = f"var(--c{look % COLOURS})"
        for number in numbers:
            x, y = at(number.real, number.imag)
            tooltip = f"<title>{markup(name)}: |λ| = {abs(number):.3f}</title>"
            style = f"fill:{colour};fill-opacity:.65"
            parts.append(f'<circle style="{style}" cx="{x:.1f}" cy="{y:.1f}" r="3">{tooltip}</circle>')
        legend = TOP + 18 + 20 * look
        parts.append(f'<circle style="fill:{colour}" cx="{LEFT + SIZE + 22:.1f}" cy="{legend:.1f}" r="4"/>')
        largest = max((abs(number) for number in numbers), default=0.0)
        parts.append(words(LEFT + SIZE + 32, legend + 4, f"{name}: largest |λ| = {largest:.3f}"))
    legend = TOP + 18 + 20 * len(groups)
    parts.append(f'<path class="front" d="M{LEFT + SIZE + 14:.1f} {legend:.1f}h16"/>')
    parts.append(words(LEFT + SIZE + 36, legend + 4, "the unit circle, |λ| = 1", kind="label"))
    return frame("".join(parts + _ticks(reach, at)), title, 720, TOP + SIZE + 46)


def _ticks(reach: float, place: Callable[[float, float], tuple[float, float]]) -> list[str]:
    step = 0.5 if reach < 2 else 1.0 if reach < 4 else float(math.ceil(reach / 4))
    values = [step * n for n in range(-int(reach / step), int(reach / step) + 1)]
    parts = [words(place(value, 0)[0], TOP + SIZE + 16, f"{value:g}", "middle") for value in values]
    parts += [words(LEFT - 6, place(0, value)[1] + 4, f"{value:g}", "end") for value in values]
    parts.append(words(LEFT + SIZE / 2, TOP + SIZE + 36, "real part of λ", "middle", "label"))
    parts.append(turned(18, TOP + SIZE / 2, "imaginary part of λ", -90, "middle", "label"))
    return parts

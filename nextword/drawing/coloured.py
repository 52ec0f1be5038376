"""A text in any script on a coloured background: the redder a token, the larger its number; blue is negative.

Karpathy et al. 2015 drew single units over text this way. Tokens whose letters join, such as an accent
that is a token of its own, are drawn as one with the mean of their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nextword.drawing.elements import cell, frame, glyphs, ground, scale, share_of, width_of, words

WIDTH = 720
_LINE = 25.0
_EDGE = 12.0
NEWLINE = "⏎"


def coloured(
    pieces: Sequence[str],
    values: Sequence[float],
    title: str,
    unit: str,
    limits: tuple[float, float] | None = None,
) -> str:
    """Draw the text, line by line, with a scale below; NaN has no background."""
    low, high = limits or _limits(values)
    parts: list[str] = []
    x, y = _EDGE, 8.0
    for group in glyphs(list(pieces)):
        text = "".join(pieces[place] for place in group)
        real = [values[place] for place in group if math.isfinite(values[place])]
        value = sum(real) / len(real) if real else math.nan
        shown = text.replace("\n", NEWLINE).replace("\t", "→")
        wide = max(3.6, width_of(shown))
        if x + wide > WIDTH - _EDGE and x > _EDGE:
            x, y = _EDGE, y + _LINE
        style = "fill:none" if math.isnan(value) else ground(share_of(value, low, high))
        tooltip = f"{shown.strip() or repr(text)[1:-1]}: {value:.3g} {unit}"
        parts.append(cell(x, y, wide, _LINE - 4, style, tooltip))
        parts.append(_word(x, y + 15, shown, wide))
        x += wide
        if text.endswith("\n"):
            x, y = _EDGE, y + _LINE
    bottom = y + (_LINE if x > _EDGE else 0)
    parts.append(scale(_EDGE, bottom + 8, low, high, unit))
    return frame("".join(parts), title, WIDTH, bottom + 40)


def _word(x: float, y: float, text: str, wide: float) -> str:
    """Draw a word that fills the width of its background, whatever the reader's font is."""
    bare = text.strip(" ")
    if not bare:
        return ""
    before = width_of(text[: len(text) - len(text.lstrip(" "))])
    own = max(3.0, wide - before - width_of(text[len(text.rstrip(" ")) :]))
    fitted = f'textLength="{own:.1f}" lengthAdjust="spacingAndGlyphs"' if len(bare) > 1 else ""
    return words(x + before, y, bare, "start", "tick", fitted)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    real = [value for value in values if math.isfinite(value)]
    low, high = min(real, default=0.0), max(real, default=1.0)
    if low < 0 < high:
        most = max(-low, high)
        return -most, most
    return min(0.0, low), max(high, low + 1e-9)

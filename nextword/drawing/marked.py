"""Running text with marks: tagged words, spans with labels, and words on a background that shows a number.

Text stays text: the reader's fonts draw any script, and it can be searched and copied. The surer a label, the
stronger its colour; a dashed line is below 90 %, a dotted one below 60 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nextword.core.display import markup

SURE, LIKELY = 0.9, 0.6
_GOLDEN = 137.508  # degrees: neighbouring numbers get colours that are far apart
_FIRST_HUE = 210.0
_STRONGEST = 0.8
_SOFT = 0.75  # small numbers are drawn a little stronger than they are


class Mark(NamedTuple):
    """A labelled part of a text, from a character to behind another."""

    start: int
    end: int
    label: str
    colour: int  # a number for each label
    confidence: float


class Weight(NamedTuple):
    """A part of a text and a number from -1 to 1; ``note`` is shown when the pointer rests on it."""

    start: int
    end: int
    share: float
    note: str


def marked(text: str, marks: Sequence[Mark], below: bool = False) -> str:
    """Return a paragraph; ``below``: labels stand below the words instead of behind them."""
    parts, at = [], 0
    for mark in marks:
        parts.append(markup(text[at : mark.start]))
        parts.append(_mark(markup(text[mark.start : mark.end]), mark))
        at = mark.end
    parts.append(markup(text[at:]))
    kind = "marked tags" if below else "marked"
    return f'<p class="{kind}" dir="auto">{"".join(parts)}</p>'


def legend(labels: Sequence[str]) -> str:
    """Return all labels in their colours, and what the lines mean."""
    each = "".join(
        f'<span class="m" style="--h:{_hue(colour)}">{markup(label)}</span>'
        for colour, label in enumerate(labels)
    )
    lines = (
        f'<span class="m unsure" style="--h:{_hue(0)};--p:.5">below {SURE:.0%}</span>'
        f'<span class="m guess" style="--h:{_hue(0)};--p:.2">below {LIKELY:.0%}</span>'
    )
    return f'<div class="legend">{each}<span class="soft">confidence:</span>{lines}</div>'


def weighted(text: str, weights: Sequence[Weight]) -> str:
    """Return a paragraph whose words are warm where their number is positive, cold where it is negative."""
    parts, at = [], 0
    for each in weights:
        parts.append(markup(text[at : each.start]))
        tone = "cold" if each.share < 0 else "hot"
        strength = min(1.0, abs(each.share)) ** _SOFT * _STRONGEST
        parts.append(
            f'<span class="w" style="background:rgba(var(--{tone}),{strength:.2f})" '
            f'title="{markup(each.note)}">{markup(text[each.start : each.end])}</span>'
        )
        at = each.end
    parts.append(markup(text[at:]))
    return f'<p class="marked" dir="auto">{"".join(parts)}</p>'


def answer(label: str, probability: float, others: str = "") -> str:
    """Return a line with a label, its probability and, smaller, the rest."""
    rest = f"<small>{markup(others)}</small>" if others else ""
    return f'<p class="answer"><b>{markup(label)}</b> {probability:.1%}{rest}</p>'


def _mark(text: str, mark: Mark) -> str:
    kind = "m" if mark.confidence >= SURE else "m unsure" if mark.confidence >= LIKELY else "m guess"
    label = markup(mark.label)
    return (
        f'<span class="{kind}" style="--h:{_hue(mark.colour)};--p:{mark.confidence:.2f}" '
        f'title="{label} {mark.confidence:.1%}">{text}<b>{label}</b></span>'
    )


def _hue(colour: int) -> int:
    return round(_FIRST_HUE + _GOLDEN * colour) % 360

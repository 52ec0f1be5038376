"""Hidden units over a text: which unit follows quotes, the length of a line, the end of a sentence.

Karpathy et al. 2015 found cells that do. A unit is chosen on one half of the text and measured on the
other, since of many units one always fits a short text by chance. [IITD-2 "Multi-layer RNNs": what the
layers hold]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.drawing.coloured import coloured
from nextword.drawing.page import Table
from nextword.probe import features
from nextword.probe.gradients import KINDS
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.selection import check_layer
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject, TokenRow, joined
from nextword.probe.words import WordSubject, followed

Array = np.ndarray[Any, np.dtype[Any]]
_TOKENS = 1200
_SHOWN = 320  # tokens of a coloured text
_BEST = 3  # units that are drawn


@dataclass(frozen=True)
class BestUnit:
    """The unit that follows a feature best."""

    feature: str
    layer: str
    unit: int
    chosen_r: float  # on the first half of the text, where it was chosen
    r: float  # on the second half


class Units:
    """Single units, as colours of the text."""

    about = (
        "hidden units over the text: which one tracks quotes, lines, sentences (--layer L --unit U for one)"
    )
    needs = "recurrent networks, Transformers, taggers and classifiers"

    def fits(self, subject: Subject) -> bool:
        """Accept networks with layers over the whole text."""
        return isinstance(subject, WordSubject) or (subject.kind in KINDS and subject.kind != "window")

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show the best unit of each feature, or the one asked for."""
        if isinstance(subject, WordSubject):
            words, layers, values_of = followed(subject, settings.tokens)
        else:
            words, layers = states(subject, settings.tokens or _TOKENS, cells=True)
            values_of = features.numbers(words.pieces)
        tried = [best(name, values, layers) for name, values in values_of.items()]
        found = sorted((each for each in tried if each is not None), key=lambda each: -abs(each.r))
        arrays = dict(layers)
        title = f"Hidden units over the text: {subject.name}"
        if settings.unit:
            chosen, sentence = [_asked(settings, layers)], f"Unit {settings.unit} over the text."
        else:
            chosen, sentence = (
                [(each.layer, each.unit, _summary(each)) for each in found[:_BEST]],
                _sentence(found),
            )
        rows = tuple(
            (each.feature, each.layer, each.unit + 1, round(each.chosen_r, 2), round(each.r, 2))
            for each in found
        )
        heads = ("feature of the text", "layer", "unit", "r where it was chosen", "r on the other half")
        parts = [
            _drawn(words, dict(layers)[layer][:, unit], layer, unit, summary)
            for layer, unit, summary in chosen
        ]
        return ProbeResult(
            "units", subject.name, title, sentence, 'IITD-2 "Multi-layer RNNs"', arrays,
            {"N": words.labels}, (Table(heads, rows), *parts),
        )  # fmt: skip


def states(subject: Subject, tokens: int, cells: bool = False) -> tuple[TokenRow, list[tuple[str, Array]]]:
    """Return the text, and every layer's activations after each of its tokens."""
    from nextword.probe import passes  # needs torch

    rows = subject.rows(tokens)
    found = passes.states_of(subject.network, [row.ids_T for row in rows], cells)
    return joined(rows), [(name, x_ND.double().cpu().numpy()) for name, x_ND in found]


def best(feature: str, values_N: Array, layers: list[tuple[str, Array]]) -> BestUnit | None:
    """Return the unit of any layer that correlates most with a feature on the first half of the text."""
    half = len(values_N) // 2
    if values_N[:half].std() == 0 or values_N[half:].std() == 0:
        return None
    found = None
    for name, x_ND in layers[1:]:
        r_D = correlations(x_ND[:half], values_N[:half])
        unit = int(np.argmax(np.abs(r_D)))
        if found is None or abs(r_D[unit]) > abs(found.chosen_r):
            later = correlations(x_ND[half:, unit : unit + 1], values_N[half:])
            found = BestUnit(feature, name, unit, float(r_D[unit]), float(later[0]))
    return found


def correlations(x_ND: Array, y_N: Array) -> Array:
    """Return Pearson's r of every column with y; 0 where a column never changes."""
    x_ND, y_N = x_ND - x_ND.mean(axis=0), y_N - y_N.mean()
    scale_D = np.linalg.norm(x_ND, axis=0) * np.linalg.norm(y_N)
    return np.where(scale_D > 0, y_N @ x_ND / np.where(scale_D > 0, scale_D, 1.0), 0.0)


def _asked(settings: ProbeSettings, layers: list[tuple[str, Array]]) -> tuple[str, int, str]:
    deep = [(name, x_ND) for name, x_ND in layers[1:] if not name.endswith(", c")]
    name, x_ND = deep[max(0, check_layer(settings.layer, len(deep)))]
    return name, check_layer(settings.unit, x_ND.shape[1], "unit"), ""


def _summary(each: BestUnit) -> str:
    way = "high" if each.r > 0 else "low"
    return f"It goes with '{each.feature}': {way} where that is high (r = {each.r:.2f} on new text)."


def _sentence(found: list[BestUnit]) -> str:
    if not found:
        return "The text is too short or too uniform to find a unit that follows a feature; give more --text."
    first = found[0]
    return (
        f"Unit {first.unit + 1} of {first.layer} follows '{first.feature}' best: r = {first.r:.2f} on "
        "the half of the "
        f"text that it was not chosen on."
    )


def _drawn(words: TokenRow, values_N: Array, layer: str, unit: int, summary: str) -> Figure:
    most = float(np.quantile(np.abs(values_N), 0.98)) or 1.0
    title = f"Unit {unit + 1} of {layer}, over the text"
    shown = words.first(_SHOWN)
    return Figure(
        title,
        coloured(shown.pieces, values_N[:_SHOWN].tolist(), title, "value of the unit", (-most, most)),
        f"{summary} Red is above 0, blue below; the first {len(shown)} of {len(words)} tokens.".strip(),
    )

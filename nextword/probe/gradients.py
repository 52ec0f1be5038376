"""Gradient norm by distance: how far back the loss of a token still has an effect on the network.

||d loss(t) / d h(t-k)|| for k = 1, 2, …, the mean over places of the text, in every layer. [IITD-2 "Vanishing
gradient": the loss far away hardly reaches h(1)]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.probe.result import Figure, ProbeResult
from nextword.probe.settings import ProbeSettings
from nextword.probe.subject import Subject

Array = np.ndarray[Any, np.dtype[Any]]
KINDS = ("recurrent", "transformer", "window")
FALLEN = 0.01  # of the norm at distance 1: beyond it little is learned
_TOKENS = 320
_MOST = 6  # lines in one picture
_SHOWN = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500)


class Gradients:
    """How the gradient falls with the distance."""

    about = "gradient norm by distance: d loss(t) / d h(t-k)"
    needs = "neural networks"

    def fits(self, subject: Subject) -> bool:
        """Accept any network of ours."""
        return subject.kind in KINDS

    def look(self, subject: Subject, settings: ProbeSettings, against: Subject | None = None) -> ProbeResult:
        """Show one network, or two in one picture: then one layer of each."""
        own = _measure(subject, settings)
        series = [(name, own.mean[place]) for place, name in enumerate(own.sites)]
        arrays: dict[str, Array] = {
            "norm_SPK": own.norm_SPK,
            "mean_SK": own.mean,
            "places_P": own.places_P,
        }
        names = {"S": own.sites}
        if against is not None:
            other = _measure(against, settings)
            arrays["against_mean_SK"] = other.mean
            names["against S"] = other.sites
            series = _pair(subject, series) + _pair(against, _named(other))
        reach = [(name, reached(values)) for name, values in series]
        return ProbeResult(
            "gradients", subject.name, f"How far the gradient reaches: {subject.name}",
            _sentence(reach, len(series[0][1])),
            'IITD-2 "Vanishing Gradient Intuition"', arrays, names, (_picture(series, len(own.places_P)),),
        )  # fmt: skip


def _measure(subject: Subject, settings: ProbeSettings) -> Any:
    from nextword.probe import distances  # needs torch

    tokens = settings.tokens or max(_TOKENS, 3 * settings.distance)
    row = subject.row(tokens)
    return distances.by_distance(subject.network, row.ids_T, settings.distance, settings.places)


def _named(found: Any) -> list[tuple[str, Array]]:
    return [(name, found.mean[place]) for place, name in enumerate(found.sites)]


def _pair(subject: Subject, series: list[tuple[str, Array]]) -> list[tuple[str, Array]]:
    """Return the embeddings and the top layer, named by the run."""
    chosen = series if len(series) <= 2 else [series[0], series[-1]]
    return [(f"{subject.name}: {name}", values) for name, values in chosen]


def reached(mean_K: Array) -> int | None:
    """Return the first distance at which the norm is below a hundredth of its first; None: nowhere."""
    fallen = np.flatnonzero(mean_K < FALLEN * mean_K[0])
    return int(fallen[0]) + 1 if len(fallen) else None


def _sentence(reach: list[tuple[str, int | None]], longest: int) -> str:
    fallen = sorted((far, name) for name, far in reach if far is not None)
    kept = ", ".join(name for name, far in reach if far is None)
    if not fallen:
        return f"The gradient stays above a hundredth of its first value for {longest} tokens ({kept})."
    summary = [f"after {far} tokens ({name})" for far, name in fallen]
    summary += [f"not within {longest} tokens ({kept})"] if kept else []
    return f"The gradient falls below a hundredth of its first value {'; '.join(summary)}."


def _picture(series: list[tuple[str, Array]], places: int) -> Figure:
    drawn = series if len(series) <= _MOST else [*series[: _MOST - 2], *series[-2:]]
    curves = [
        Series(name, tuple((float(k), float(y)) for k, y in enumerate(values, start=1)))
        for name, values in drawn
    ]
    longest = max(len(values) for _, values in series)
    kept = [k for k in _SHOWN if k <= longest]
    rows = tuple(
        (k, *(float(values[k - 1]) if k <= len(values) else None for _, values in series)) for k in kept
    )
    return Figure(
        "Gradient norm by distance",
        lines(curves, "Gradient norm by distance", Axis("distance k, in tokens back"),
              Axis("‖d loss(t) / d h(t-k)‖", log=True)),
        "How strongly the loss of a token depends on what the network held k tokens before it: the "
        "mean over "
        f"{places} places of the text, on a logarithmic scale. A straight line down is a gradient "
        "that vanishes by "
        "the same factor at every step.",
        Table(("distance", *(name for name, _ in series)), rows),
    )  # fmt: skip

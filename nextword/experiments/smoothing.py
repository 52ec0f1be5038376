"""eps from 0 to infinity, delta, and all smoothings side by side.

[XMU "Laplace smoothing": "eps = 0 and eps = infinity?"; "Sparsity problems of n-gram models"]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from nextword.core import catalog
from nextword.core.events import Event, Progress, Stage
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.evaluation.lm import orders
from nextword.experiments.finding import Judge, Verdict
from nextword.experiments.result import Chart, ExperimentResult, finish
from nextword.experiments.texts import QUICK, Material, prepare
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings

CLAIM = (
    "eps are hyperparameters. eps = 0: counts alone, nothing for what was never seen; eps = infinity: the "
    "counts of longer n-grams no longer matter."
)
ZERO = "eps = 0: nothing is left for what was never seen"
INFINITE = "eps = infinity: the counts of longer n-grams no longer matter"
BETWEEN = "eps is a hyperparameter: the best one is neither 0 nor infinity"
CLAIMS = (ZERO, INFINITE, BETWEEN)
OF_EPS = (
    "Laplace: held-out perplexity against eps. Both ends are worse than the middle; the ends themselves (0 "
    "and infinity) are in the table."
)
OF_DELTA = (
    "Add-delta: the same constant for every word. Even its best is far from the good smoothings, since "
    "unseen words are not equally likely."
)
UNKNOWNS = (
    "How much an unknown word costs differs widely: Good-Turing (katz) expects as many of them as there are "
    "words seen once, the others give them a share of the lowest order only. The last column leaves them out."
)
EPS = (0.0, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e6, math.inf)
DELTA = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
ORDERS = (2, 3)


@dataclass(frozen=True)
class _Curves:
    """Held-out figures by order and value."""

    fits: dict[tuple[int, float], orders.Fit]

    def series(self, order: int, name: str) -> Series:
        """Make one line; 0 and infinity have no place on a logarithmic axis."""
        points = ((v, fit.perplexity) for (n, v), fit in self.fits.items() if n == order)
        return Series(name, tuple((v, p) for v, p in points if 0 < v < math.inf))

    def table(self, head: str) -> Table:
        """Return every number; if the perplexity is infinite, the share of impossible tokens says why."""
        values = list(dict.fromkeys(v for _, v in self.fits))
        rows = tuple((_value(v), *(_shown(self.fits[n, v]) for n in ORDERS)) for v in values)
        return Table((head, *(f"order {n}" for n in ORDERS)), rows)


def run(out: str | None = None, run: str | None = None, quick: bool = False) -> Iterator[Event]:
    """Sweep eps and delta on the run's text or on the embedded corpus."""
    text = yield from prepare(run, most=QUICK if quick else 0)
    words = float(text.vocab_size - 1)  # eps1 = M adds one to every word's count
    eps = yield from _sweep(text, "laplace, eps from 0 to infinity", EPS, lambda n, v: NgramSettings(
        order=n, smoothing="laplace", eps=[words, *[v] * (n - 1)]))  # fmt: skip
    delta = yield from _sweep(text, "add delta", DELTA, lambda n, v: NgramSettings(
        order=n, smoothing="add", delta=v))  # fmt: skip
    unigram = _measure(text, NgramSettings(order=1, smoothing="laplace", eps=words)).perplexity
    beside, best = yield from _side_by_side(text)
    limit = eps.fits[3, math.inf].perplexity
    zero = eps.fits[3, 0.0]
    inner = min((fit.perplexity, v) for (n, v), fit in eps.fits.items() if n == 3)
    judge = Judge(quick)
    judge.exact(ZERO, zero.zeros > 0 or Verdict.OPEN, f"{zero.zero_share:.0%} of the held-out tokens get 0")
    judge.exact(
        INFINITE,
        math.isclose(limit, unigram, rel_tol=1e-4),
        f"perplexity {limit:,.1f}; the unigram has {unigram:,.1f}",
    )
    judge.measure(
        BETWEEN,
        0 < inner[1] < math.inf,
        f"the trigram is best at eps = {_value(inner[1])}, with perplexity {inner[0]:,.0f}; of all "
        f"smoothings {best} predicts known words best",
    )
    yield from finish(
        ExperimentResult(
            "smoothing", "Smoothing, from none to nothing else", 'XMU "Laplace smoothing"', CLAIM,
            f"eps = 0 makes {zero.zero_share:.0%} of new tokens impossible; eps = {_value(inner[1])} is best",
            judge.findings,
            f"Measured on {text.about}. eps1 is M, the number of words, which adds one to every count.",
            (
                _picture(eps, "eps2 and eps3", OF_EPS),
                _picture(delta, "delta", OF_DELTA),
                UNKNOWNS,
                beside,
            ),
        ),
        out,
    )  # fmt: skip


def _sweep(
    text: Material, name: str, values: tuple[float, ...], settings: Callable[[int, float], NgramSettings]
) -> Generator[Event, None, _Curves]:
    yield Stage(name, len(values) * len(ORDERS), "models")
    found: dict[tuple[int, float], orders.Fit] = {}
    for n in ORDERS:
        for value in values:
            found[n, value] = _measure(text, settings(n, value))
            yield Progress(len(found))
    return _Curves(found)


def _measure(text: Material, settings: NgramSettings) -> orders.Fit:
    model = estimation.build(text.ids, text.vocab_size, settings)
    return orders.measure(model, orders.sample(text.held))


def _side_by_side(text: Material) -> Generator[Event, None, tuple[Table, str]]:
    """Measure every smoothing of the catalog with its defaults, at order 3."""
    names = catalog.names("smoothing")
    yield Stage("all smoothings", len(names), "models")
    fits: dict[str, orders.Fit] = {}
    for name in names:
        fits[name] = _measure(text, NgramSettings(order=3, smoothing=name))
        yield Progress(len(fits))
    rows = tuple(
        (name + (" (a score, not a probability)" if name == "stupid" else ""), _shown(fit), fit.known)
        for name, fit in fits.items()
    )
    best = min((fit.known, name) for name, fit in fits.items() if name != "stupid")
    heads = ("smoothing", "perplexity of new text", "of its known words")
    return Table(heads, rows, "All smoothings at order 3"), best[1]


def _picture(curves: _Curves, label: str, caption: str) -> Chart:
    series = [curves.series(n, f"order {n}") for n in ORDERS]
    svg = lines(
        series, f"Perplexity against {label}", Axis(label, log=True), Axis("perplexity of new text", log=True)
    )
    return Chart(svg, caption, curves.table(label))


def _shown(fit: orders.Fit) -> str:
    return (
        f"{fit.perplexity:,.1f}"
        if math.isfinite(fit.perplexity)
        else f"infinite ({fit.zero_share:.1%} impossible)"
    )


def _value(value: float) -> str:
    return "infinity" if math.isinf(value) else f"{value:g}"

"""The pictures of a comparison; a model has one colour and one mark in all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nextword.comparison.growth import Growth
from nextword.comparison.ranking import RankedModel
from nextword.comparison.rows import Row
from nextword.drawing import svg
from nextword.drawing.svg import Axis, Series
from nextword.evaluation.lm import orders


@dataclass(frozen=True)
class Cost:
    """What a model costs: one number, and its axis."""

    title: str
    axis: str
    value: Callable[[Row], float | None]


SECONDS = Cost("Training time", "seconds to train", lambda row: row.train_seconds or None)
SIZE = Cost("Size", "megabytes on disk", lambda row: row.size / 1e6 or None)
SPEED = Cost(
    "Scoring time",
    "microseconds to score a token",
    lambda row: 1e6 / row.tokens_per_second if row.tokens_per_second else None,
)


def ranking(found: Sequence[RankedModel]) -> str:
    """Draw bits per byte as bars, with the spread over seeds."""
    real = [each for each in found if each.ranks]
    values = [(each.name, each.bits or math.inf) for each in real]
    notes = [f"{each.bits:.3f}" + (f" ± {each.spread:.3f}" if each.spread else "") for each in real]
    return svg.bars(
        values, "Bits per byte of each model", "bits per byte of the new text; less is better",
        notes, [each.spread or 0.0 for each in real],
    )  # fmt: skip


def learning(found: Sequence[RankedModel], by_tokens: bool) -> str:
    """Draw learning curves over tokens or seconds, one line per seed; count models are flat."""
    rows = [row for each in found for row in each.rows if row.ranks and not row.parts]
    longest = max(row.curve[-1][0] if row.curve else row.train_seconds for row in rows)
    series = []
    for look, each in enumerate(found):
        for place, row in enumerate(each.rows):
            points = tuple((float(tokens if by_tokens else s), bits) for s, tokens, bits in row.curve)
            if row.is_counted and row.ranks and not by_tokens and row.tune_bits is not None:
                ready = row.train_seconds
                points = ((ready, row.tune_bits), (longest, row.tune_bits))
            if points:
                series.append(Series(each.name, points, look, named=place == 0))
    x = Axis("tokens read in training", log=True) if by_tokens else Axis("seconds of training", zero=True)
    title = f"Learning curves over {'tokens' if by_tokens else 'seconds'}"
    return svg.lines(series, title, x, Axis("bits per byte"))


def differ(found: Sequence[RankedModel], cost: Cost) -> bool:
    """Tell whether a picture would show anything: costs that differ enough."""
    values = [value for _, value, _ in _points(found, cost)]
    return len(values) > 1 and max(values) > 1.2 * min(values)


def pareto(found: Sequence[RankedModel], cost: Cost) -> str:
    """Draw bits per byte against a cost, with the Pareto front."""
    points = _points(found, cost)
    series = [Series(found[look].name, ((x, y),), look) for look, x, y in points]
    front = svg.front([(x, y) for _, x, y in points])
    title = f"{cost.title} against bits per byte"
    return svg.scatter(series, title, Axis(cost.axis, log=True), Axis("bits per byte"), front)


def _points(found: Sequence[RankedModel], cost: Cost) -> list[tuple[int, float, float]]:
    pairs = [(look, each.mean(cost.value), each.bits) for look, each in enumerate(found) if each.ranks]
    return [(look, x, y) for look, x, y in pairs if x is not None and y is not None]


def by_order(growth: Growth, names: Sequence[str]) -> tuple[str, list[str]]:
    """Draw perplexity by order; also name the models that are infinite and not drawn."""
    series = []
    for look, name in enumerate(names):
        values = [math.inf if value is None else value for value in growth.perplexities.get(name, [])]
        if values:
            series.append(Series(name, tuple((float(n), y) for n, y in enumerate(values, start=1)), look))
    drawn = [each for each in series if len(each.real) > 1]
    left = [each.name for each in series if len(each.real) <= 1]
    axis = orders.orders_axis(len(growth.facts))
    return svg.lines(drawn, "Perplexity by order", axis, Axis("perplexity of the new text", log=True)), left

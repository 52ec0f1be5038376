"""The pictures of a comparison; a model has one colour and one mark in all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from nextword.comparison.growth import Growth
from nextword.comparison.ranking import RankedModel
from nextword.comparison.rows import R, Row
from nextword.drawing import svg
from nextword.drawing.svg import Axis, Series
from nextword.evaluation.lm import orders


@dataclass(frozen=True)
class Cost(Generic[R]):
    """What a model costs: one number, and its axis."""

    title: str
    axis: str
    value: Callable[[R], float | None]


SECONDS: Cost[Any] = Cost("Training time", "seconds to train", lambda row: row.train_seconds or None)
SIZE: Cost[Any] = Cost("Size", "megabytes on disk", lambda row: row.size / 1e6 or None)
SPEED: Cost[Row] = Cost(
    "Scoring time",
    "microseconds to score a token",
    lambda row: 1e6 / row.tokens_per_second if row.tokens_per_second else None,
)


def ranking(found: Sequence[RankedModel[R]]) -> str:
    """Draw what decides as bars, with the spread over seeds."""
    real = [each for each in found if each.ranks]
    decides = found[0].decides
    name, better = decides.name, "more" if decides.higher else "less"
    values = [(each.name, math.inf if each.value is None else each.value) for each in real]
    notes = [f"{each.value:.3f}" + (f" ± {each.spread:.3f}" if each.spread else "") for each in real]
    return svg.bars(
        values, f"{name[0].upper()}{name[1:]} of each model",
        f"{name} of the {decides.new}; {better} is better", notes, [each.spread or 0.0 for each in real],
    )  # fmt: skip


def learning(found: Sequence[RankedModel[R]], by_tokens: bool) -> str:
    """Draw learning curves over tokens or seconds, one line per seed; count models are flat.

    They are of the text for choices; the number beside a name is the table's, of the new text.
    """
    rows = [row for each in found for row in each.rows if row.ranks and (row.curve or row.is_counted)]
    longest = max(row.curve[-1][0] if row.curve else row.train_seconds for row in rows)
    series = []
    for look, each in enumerate(found):
        for place, row in enumerate(each.rows):
            points = tuple((float(tokens if by_tokens else s), value) for s, tokens, value in row.curve)
            if row.is_counted and row.ranks and not by_tokens and row.tuned is not None:
                points = ((row.train_seconds, row.tuned), (longest, row.tuned))
            if points:
                name = each.name if each.value is None else f"{each.name} {each.value:.3f}"
                series.append(Series(name, points, look, named=place == 0))
    x = Axis("tokens read in training", log=True) if by_tokens else Axis("seconds of training", zero=True)
    title = f"Learning curves over {'tokens' if by_tokens else 'seconds'}"
    decides = found[0].decides
    return svg.lines(series, title, x, Axis(f"{decides.name} of the {decides.choices}"))


def differ(found: Sequence[RankedModel[R]], cost: Cost[R]) -> bool:
    """Tell whether a picture would show anything: costs that differ enough."""
    values = [value for _, value, _ in _points(found, cost)]
    return len(values) > 1 and max(values) > 1.2 * min(values)


def pareto(found: Sequence[RankedModel[R]], cost: Cost[R]) -> str:
    """Draw what decides against a cost, with the Pareto front."""
    points, decides = _points(found, cost), found[0].decides
    series = [Series(found[look].name, ((x, decides.value(y)),), look) for look, x, y in points]
    front = [(x, decides.value(y)) for x, y in svg.front([(x, y) for _, x, y in points])]
    title = f"{cost.title} against {decides.name}"
    return svg.scatter(series, title, Axis(cost.axis, log=True), Axis(decides.name), front)


def _points(found: Sequence[RankedModel[R]], cost: Cost[R]) -> list[tuple[int, float, float]]:
    pairs = [(look, each.mean(cost.value), each.cost) for look, each in enumerate(found) if each.ranks]
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

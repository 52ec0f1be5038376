"""The models in the order of the number that decides: means over seeds, and how certain the order is.

[IITD-2 "LSTM vs GRU"]: "no conclusive evidence" for either is the result of a test against the best one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np

from nextword.comparison.rows import R, Row, finite
from nextword.drawing.page import Cell, Table
from nextword.drawing.svg import number
from nextword.evaluation.significance import LEVEL, SEEDS, Test, against, holm, spread
from nextword.training.budget.plan import Plans


@dataclass(frozen=True)
class Decides:
    """The number that says which model is better."""

    name: str
    higher: bool = False  # whether more of it is better
    tiny: float = 0.0  # less is not called a difference
    best: str = "is best on the new examples"  # what the best model does
    new: str = "new examples"  # what it is measured on
    choices: str = "examples for choices"  # what it is measured on in training

    def value(self, cost: float) -> float:
        """Return the number itself; costs are better where they are lower."""
        return -cost if self.higher else cost


BITS = Decides(
    "bits per byte",
    tiny=0.0005,
    best="predicts the new text best",
    new="new text",
    choices="text for choices",
)


@dataclass(frozen=True)
class RankedModel(Generic[R]):
    """One model: a row for each seed, and its test against the best."""

    name: str
    rows: tuple[R, ...]
    decides: Decides = BITS
    is_best: bool = False
    test: Test | None = None  # None: nothing to test against
    p: float | None = None  # of the test, corrected for the number of models; None: too few seeds

    @property
    def first(self) -> R:
        """The row of the first seed, whose texts are shown."""
        return self.rows[0]

    @property
    def ranks(self) -> bool:
        """Whether all of its runs can be ranked."""
        return all(row.ranks for row in self.rows)

    def mean(self, value: Callable[[R], float | None]) -> float | None:
        """Average over the seeds; None if one has no such number."""
        found = [value(row) for row in self.rows]
        return None if None in found else float(np.mean([each for each in found if each is not None]))

    def spread_of(self, value: Callable[[R], float | None]) -> float | None:
        """Return the standard deviation over the seeds; None for one."""
        return spread([each for each in map(value, self.rows) if each is not None])

    @property
    def cost(self) -> float | None:
        """The mean of what decides; lower is better."""
        return self.mean(lambda row: row.cost)

    @property
    def value(self) -> float | None:
        """The mean of what decides, as people know it."""
        return None if self.cost is None else self.decides.value(self.cost)

    @property
    def spread(self) -> float | None:
        """The standard deviation of what decides over the seeds; None for one."""
        return self.spread_of(lambda row: row.cost)

    @property
    def has_enough_seeds(self) -> bool:
        """Whether it is known how much its seeds differ; a model without random numbers has none."""
        return self.first.seed is None or len(self.rows) >= SEEDS

    @property
    def differs(self) -> bool | None:
        """Whether it is significantly worse than the best, by more than a tiny amount; None: not known."""
        if self.test is None or self.p is None:
            return None
        return self.p < LEVEL and self.test.behind >= self.decides.tiny

    @property
    def verdict(self) -> str:
        """The result of the test in a few words."""
        if self.is_best:
            most = "highest" if self.decides.higher else "lowest"
            return "the best" if self.has_enough_seeds else f"{most} mean"
        if self.test is None:
            return ""
        if self.p is None:
            return f"no verdict below {SEEDS} seeds"
        if self.p < LEVEL and not self.differs:
            return f"behind by less than {self.decides.tiny:.4f}"
        return f"{'worse' if self.differs else 'no significant difference'} ({shown_p(self.p)})"

    @property
    def note(self) -> str:
        """The note on its first seed."""
        return self.first.note

    @property
    def planned(self) -> str:
        """The size that was chosen for the minutes; empty where nothing was chosen."""
        chosen = Plans.from_json(self.first.plan).describe()
        seeds = f", planned once for its {len(self.rows)} seeds" if len(self.rows) > 1 else ""
        return chosen and chosen + seeds

    def to_json(self) -> dict[str, Any]:
        """Return the numbers of the first seed under their names, the means, the test, and every seed."""
        test = None
        if self.test is not None:
            test = {
                "behind": self.test.behind, "low": finite(self.test.low), "high": finite(self.test.high),
                "detectable": finite(self.test.detectable), "p": self.p, "significant": self.differs,
                "verdict": self.verdict,
            }  # fmt: skip
        name = self.decides.name.replace(" ", "_").lower()
        means = {name: self.value, f"{name}_spread": self.spread}
        seeds = [row.to_json() for row in self.rows] if len(self.rows) > 1 else []
        return {**self.first.to_json(), **means, "best": self.is_best, "test": test, "seeds": seeds}


def rank(rows: Sequence[R], sizes: Sequence[float], decides: Decides = BITS) -> list[RankedModel[R]]:
    """Rank models, the best first; those without a finite number follow, scores last.

    ``sizes``: of the blocks of new examples, in the unit of what decides.
    """
    named: dict[str, list[R]] = {}
    for row in rows:
        named.setdefault(row.model, []).append(row)
    found = [RankedModel(name, tuple(each), decides) for name, each in named.items()]
    found.sort(key=_order)
    return _tested(found, sizes)


def _order(model: RankedModel[R]) -> tuple[bool, bool, float, str]:
    cost = math.inf if model.cost is None else model.cost
    return not model.ranks, model.first.comes_last, cost, model.name


def _tested(found: list[RankedModel[R]], sizes: Sequence[float]) -> list[RankedModel[R]]:
    """Test each ranked model against the best."""
    able = [each for each in found if each.ranks and _fit(each, sizes)]
    if len(able) < 2 or able[0] is not found[0]:
        return found
    best = replace(found[0], is_best=True)
    others = able[1:]
    tests = {each.name: against(_blocks(each), _blocks(best), sizes) for each in others}
    decided = [each.name for each in others if each.has_enough_seeds and best.has_enough_seeds]
    values = dict(zip(decided, holm([tests[name].p for name in decided]), strict=True))
    tested = {each.name: replace(each, test=tests[each.name], p=values.get(each.name)) for each in others}
    return [best, *(tested.get(each.name, each) for each in found[1:])]


def _fit(model: RankedModel[R], sizes: Sequence[float]) -> bool:
    return all(len(row.blocks) == len(sizes) for row in model.rows)


def _blocks(model: RankedModel[R]) -> list[list[float]]:
    return [[math.inf if bits is None else bits for bits in row.blocks] for row in model.rows]


def shown_p(p: float) -> str:
    """Write p as in ``p = 0.03``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def verdict(found: Sequence[RankedModel[R]]) -> str:
    """Return the result in one sentence or two; empty where nothing can be ranked."""
    if not found or not found[0].ranks:
        return ""
    best, tested = found[0], [each for each in found[1:] if each.test is not None]
    level = f"{best.value:.3f} {best.decides.name}"
    if tested and not best.has_enough_seeds:
        most = "highest" if best.decides.higher else "lowest"
        return f"{best.name} has the {most} mean, {level}; with fewer than {SEEDS} seeds nothing is decided."
    summary = [f"{best.name} {best.decides.best}: {level}."]
    alike = [each.name for each in tested if each.differs is False]
    if alike:
        summary.append(
            f"{_and(alike)} {'does' if len(alike) == 1 else 'do'} not differ significantly from it."
        )
    elif tested and all(each.differs for each in tested):
        summary.append("All others are significantly worse.")
    if few := [each.name for each in tested if each.differs is None]:
        summary.append(f"{_and(few)}: fewer than {SEEDS} seeds, so there is no verdict.")
    return " ".join(summary)


def differences(found: Sequence[RankedModel[R]], of: str = "") -> Table | None:
    """Return how far each model is from the best, how certain that is, and what could have been found.

    ``of``: what the differences are of, where that is not what decides.
    """
    rows = tuple(
        (each.name, *_difference(each.test, each.decides), f"{each.test.detectable:.4f}", each.verdict)
        for each in found
        if each.test is not None
    )
    heads = (of or found[0].decides.name, "difference", "95 % interval", "detectable") if found else ()
    return Table((*heads, f"against {found[0].name}"), rows) if rows else None


def _difference(test: Test, decides: Decides) -> tuple[str, str]:
    low, high = sorted((decides.value(test.low), decides.value(test.high)))
    return f"{decides.value(test.behind):+.4f}", f"{low:+.4f} to {high:+.4f}"


def few_seeds(found: Sequence[RankedModel[R]]) -> str:
    """Name the models of one seed, whose intervals cannot include how much seeds differ."""
    ranked = [each for each in found if each.ranks]
    single = [each.name for each in ranked if each.first.seed is not None and len(each.rows) == 1]
    if not single or len(ranked) < 2:
        return ""
    summary = f"one seed only of {_and(single)}: intervals include the variation of the text alone"
    return f"{summary}; use --seeds {SEEDS} for a verdict"


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def table(found: Sequence[RankedModel[Row]]) -> Table:
    """Return the results; columns that would be empty are left out."""
    columns: dict[str, list[Cell]] = {"model": [each.name for each in found]}
    columns["bits per byte"] = [fixed(each.value, each.spread) for each in found]
    columns["perplexity"] = [_figures(each.mean(lambda row: row.perplexity)) for each in found]
    if any(each.first.unknown_rate for each in found):
        columns["of known words"] = [_figures(each.mean(lambda row: row.known_perplexity)) for each in found]
    columns[_kinds(found)] = [number(each.first.numbers) if each.first.numbers else "" for each in found]
    columns["train s"] = [seconds(each.mean(lambda row: row.train_seconds)) for each in found]
    columns["trained/s"] = [whole(each.mean(lambda row: row.train_speed)) for each in found]
    columns["scored/s"] = [whole(each.mean(lambda row: row.tokens_per_second)) for each in found]
    columns["written/s"] = [whole(each.mean(lambda row: row.write_speed)) for each in found]
    columns["MB"] = [f"{each.first.size / 1e6:.1f}" for each in found]
    if any(each.verdict for each in found):
        columns["against the best"] = [each.verdict for each in found]
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def _kinds(found: Sequence[RankedModel[Row]]) -> str:
    kinds = {each.first.of for each in found if each.first.numbers}
    return kinds.pop() if len(kinds) == 1 else "params or n-grams"


def fixed(value: float | None, spread: float | None) -> str:
    """Write a mean as in 1.892 ± 0.004."""
    return "-" if value is None else f"{value:.3f}" + ("" if spread is None else f" ± {spread:.3f}")


def _figures(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}" if value < 10_000 else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """Write seconds with as many digits as matter."""
    return "-" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def whole(value: float | None) -> int | None:
    """Round a number, if there is one."""
    return None if value is None else round(value)

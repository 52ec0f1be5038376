"""The models in the order of their bits per byte: means over seeds, and how certain the order is.

[IITD-2 "LSTM vs GRU"]: "no conclusive evidence" for either is the result of a test against the best one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nextword.comparison.rows import Row
from nextword.drawing.page import Cell, Table
from nextword.drawing.svg import number
from nextword.evaluation.significance import LEVEL, Test, against, holm, spread

TINY = 0.0005  # bits per byte; less is not called a difference


@dataclass(frozen=True)
class RankedModel:
    """One model: a row for each seed, and its test against the best."""

    name: str
    rows: tuple[Row, ...]
    is_best: bool = False
    test: Test | None = None  # None: nothing to test against
    p: float | None = None  # of the test, corrected for the number of models compared

    @property
    def first(self) -> Row:
        """The row of the first seed, whose texts are shown."""
        return self.rows[0]

    @property
    def ranks(self) -> bool:
        """Whether all of its runs can be ranked."""
        return all(row.ranks for row in self.rows)

    @property
    def is_probability(self) -> bool:
        """Whether its numbers are probabilities."""
        return self.first.is_probability

    def mean(self, value: Callable[[Row], float | None]) -> float | None:
        """Average over the seeds; None if one has no such number."""
        found = [value(row) for row in self.rows]
        return None if None in found else float(np.mean([each for each in found if each is not None]))

    @property
    def bits(self) -> float | None:
        """Mean bits per byte."""
        return self.mean(lambda row: row.bits_per_byte)

    @property
    def spread(self) -> float | None:
        """The standard deviation of bits per byte over the seeds; None for one."""
        return spread([row.bits_per_byte for row in self.rows if row.bits_per_byte is not None])

    @property
    def as_good(self) -> bool:
        """Whether the test does not distinguish it from the best, or the difference is tiny."""
        return self.test is not None and self.p is not None and (self.p >= LEVEL or self.test.behind < TINY)

    @property
    def verdict(self) -> str:
        """The result of the test."""
        if self.is_best:
            return "the best"
        if self.p is None:
            return ""
        return f"{'as good' if self.as_good else 'worse'}, {shown_p(self.p)}"

    @property
    def note(self) -> str:
        """The note on its first seed."""
        return self.first.note

    def to_json(self) -> dict[str, Any]:
        """Return the numbers of the first seed under their names, the means, the test, and every seed."""
        test = None
        if self.test is not None:
            test = {
                "behind": self.test.behind, "low": self.test.low, "high": self.test.high, "p": self.p,
                "p_text": self.test.p_text, "p_seeds": self.test.p_seeds, "as_good": self.as_good,
            }  # fmt: skip
        means = {"bits_per_byte": self.bits, "bits_per_byte_spread": self.spread}
        seeds = [row.to_json() for row in self.rows] if len(self.rows) > 1 else []
        return {**self.first.to_json(), **means, "best": self.is_best, "test": test, "seeds": seeds}


def rank(rows: Sequence[Row], block_bytes: Sequence[float]) -> list[RankedModel]:
    """Rank models, the best first; those without finite bits per byte follow, scores last."""
    named: dict[str, list[Row]] = {}
    for row in rows:
        named.setdefault(row.model, []).append(row)
    found = [RankedModel(name, tuple(each)) for name, each in named.items()]
    found.sort(key=lambda s: (not s.ranks, not s.is_probability, s.bits or math.inf, s.name))
    return _tested(found, block_bytes)


def _tested(found: list[RankedModel], block_bytes: Sequence[float]) -> list[RankedModel]:
    """Test each ranked model against the best."""
    able = [each for each in found if each.ranks and _fit(each, block_bytes)]
    if len(able) < 2 or able[0] is not found[0]:
        return found
    best = replace(found[0], is_best=True)
    others = able[1:]
    tests = [against(_blocks(each), _blocks(best), block_bytes) for each in others]
    values = holm([test.p for test in tests])
    rows = zip(others, tests, values, strict=True)
    tested = {each.name: replace(each, test=test, p=p) for each, test, p in rows}
    return [best, *(tested.get(each.name, each) for each in found[1:])]


def _fit(model: RankedModel, block_bytes: Sequence[float]) -> bool:
    return all(len(row.blocks) == len(block_bytes) for row in model.rows)


def _blocks(model: RankedModel) -> list[list[float]]:
    return [[math.inf if bits is None else bits for bits in row.blocks] for row in model.rows]


def shown_p(p: float) -> str:
    """Write p as in ``p = 0.03``."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def verdict(found: Sequence[RankedModel]) -> str:
    """Return the result in one sentence; empty where nothing can be ranked."""
    if not found or not found[0].ranks:
        return ""
    best, alike = found[0], [each.name for each in found[1:] if each.as_good]
    summary = f"{best.name} predicts the new text best: {best.bits:.3f} bits per byte."
    if alike:
        summary += f" {_and(alike)} {'does' if len(alike) == 1 else 'do'} not differ significantly from it."
    elif any(each.p is not None for each in found):
        summary += " All others are significantly worse."
    return summary


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def table(found: Sequence[RankedModel]) -> Table:
    """Return the results; columns that would be empty are left out."""
    columns: dict[str, list[Cell]] = {"model": [each.name for each in found]}
    columns["bits per byte"] = [_fixed(each.bits, each.spread) for each in found]
    columns["perplexity"] = [_figures(each.mean(lambda row: row.perplexity)) for each in found]
    if any(each.first.unknown_rate for each in found):
        columns["of known words"] = [_figures(each.mean(lambda row: row.known_perplexity)) for each in found]
    columns[_kinds(found)] = [number(each.first.numbers) if each.first.numbers else "" for each in found]
    columns["train s"] = [_seconds(each.mean(lambda row: row.train_seconds)) for each in found]
    columns["trained/s"] = [_whole(each.mean(lambda row: row.train_speed)) for each in found]
    columns["scored/s"] = [_whole(each.mean(lambda row: row.tokens_per_second)) for each in found]
    columns["written/s"] = [_whole(each.mean(lambda row: row.write_speed)) for each in found]
    columns["MB"] = [f"{each.first.size / 1e6:.1f}" for each in found]
    if any(each.verdict for each in found):
        columns["against the best"] = [each.verdict for each in found]
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def _kinds(found: Sequence[RankedModel]) -> str:
    kinds = {each.first.of for each in found if each.first.numbers}
    return kinds.pop() if len(kinds) == 1 else "params or n-grams"


def _fixed(value: float | None, spread: float | None) -> str:
    """Write a mean as in 1.892 ± 0.004."""
    return "-" if value is None else f"{value:.3f}" + ("" if spread is None else f" ± {spread:.3f}")


def _figures(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}" if value < 10_000 else f"{value:,.0f}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}" if value < 10 else f"{value:,.0f}"


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)

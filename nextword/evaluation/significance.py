"""Whether one model is really better than another: tests over the held-out text and over the seeds.

[IITD-2 "LSTM vs GRU"]: "no conclusive evidence" is a statement about such a test. Two things are random, the
text that is measured and the seed of the training; each has its test, and the larger p counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LEVEL = 0.05  # a smaller p is called a difference
ROUNDS = 10_000
_EXACT = 13  # up to this many blocks all signs are tried
_NODES = 400


@dataclass(frozen=True)
class Test:
    """A model compared with the best one."""

    behind: float  # how much worse it is, per unit of `sizes`
    low: float  # the 95 % interval of the difference: from this …
    high: float  # … to this
    p_text: float  # by the blocks of the text
    p_seeds: float | None  # by the seeds; None where there are too few

    @property
    def p(self) -> float:
        """The larger one: a difference must show in the text and in the seeds."""
        return self.p_text if self.p_seeds is None else max(self.p_text, self.p_seeds)


def against(costs: Sequence[npt.ArrayLike], best: Sequence[npt.ArrayLike], sizes: npt.ArrayLike) -> Test:
    """Compare two models by what the blocks of a text cost them; one row of ``costs`` per seed.

    ``sizes``: of the blocks, in the unit in which `behind` is reported, such as bytes.
    """
    a_KB, b_KB = np.asarray(costs, dtype=np.float64), np.asarray(best, dtype=np.float64)
    size_B = np.asarray(sizes, dtype=np.float64)
    behind_B = a_KB.mean(axis=0) - b_KB.mean(axis=0)
    low, high = interval(behind_B, size_B)
    total = float(size_B.sum())
    seeds = welch((a_KB.sum(axis=1) / total).tolist(), (b_KB.sum(axis=1) / total).tolist())
    return Test(float(behind_B.sum()) / total, low, high, sign_flips(behind_B), seeds)


def sign_flips(differences: npt.ArrayLike, rounds: int = ROUNDS, seed: int = 0) -> float:
    """Return the two-sided p of paired differences: between equal models every sign is a fair coin.

    [Fisher 1935; Noreen 1989]. All signs are tried where they are few, else `rounds` draws.
    """
    d_B = np.asarray(differences, dtype=np.float64).ravel()
    if not np.any(d_B):
        return 1.0
    found = abs(float(d_B.sum())) - 1e-12 * float(np.abs(d_B).sum())  # equal sums may differ in the last bit
    if len(d_B) <= _EXACT:
        signs_RB = 1.0 - 2.0 * (np.arange(2 ** len(d_B))[:, None] >> np.arange(len(d_B)) & 1)
        return float(np.mean(np.abs(signs_RB @ d_B) >= found))
    rng = np.random.default_rng(seed)
    signs_RB = rng.integers(0, 2, (rounds, len(d_B)), dtype=np.int8) * 2.0 - 1.0
    return float((1 + np.count_nonzero(np.abs(signs_RB @ d_B) >= found)) / (1 + rounds))


def interval(
    differences: npt.ArrayLike, sizes: npt.ArrayLike, rounds: int = 2_000, seed: int = 0
) -> tuple[float, float]:
    """Return the interval of 95 % of paired bootstraps of the difference per unit, drawn block by block.

    [Efron 1979; Koehn 2004]
    """
    d_B, size_B = np.asarray(differences, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    drawn_RB = np.random.default_rng(seed).integers(0, len(d_B), (rounds, len(d_B)))
    values_R = d_B[drawn_RB].sum(axis=1) / size_B[drawn_RB].sum(axis=1)
    low, high = np.quantile(values_R, [0.025, 0.975])
    return float(low), float(high)


def welch(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Return the two-sided p of Welch's t-test (1947) on one number per seed; None without a known spread.

    A model without seeds (a count model) is one number that every run would repeat.
    """
    parts = [(float(np.var(x, ddof=1)) / len(x), len(x) - 1) for x in (a, b) if len(x) > 1]
    spread = sum(part for part, _ in parts)
    if spread <= 0:
        return None
    t = abs(float(np.mean(a)) - float(np.mean(b))) / math.sqrt(spread)
    freedom = spread**2 / sum(part**2 / n for part, n in parts)
    return student(t, freedom)


def student(t: float, freedom: float) -> float:
    """Return P(|T| > t) of Student's distribution, for one degree of freedom or more.

    With t = √ν tan θ the density becomes cos^(ν-1) θ, which a few hundred nodes integrate exactly.
    """
    theta = math.atan(abs(t) / math.sqrt(freedom))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    half = (math.pi / 2 - theta) / 2
    angles = theta + half * (nodes + 1)
    area = half * float(weights @ np.cos(angles) ** (freedom - 1))
    beta = math.lgamma(0.5) + math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2)
    return min(1.0, 2 * area * math.exp(-beta))


def holm(values: Sequence[float]) -> list[float]:
    """Correct the p values of several comparisons (Holm 1979): the smallest is multiplied by n, and so on."""
    adjusted = [1.0] * len(values)
    least = 0.0
    for rank, index in enumerate(sorted(range(len(values)), key=lambda i: values[i])):
        least = max(least, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = least
    return adjusted


def spread(values: Sequence[float]) -> float | None:
    """Return the standard deviation over seeds; None for a single one."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None

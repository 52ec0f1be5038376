"""Whether one model is really better than another: the difference, its interval, and what could be shown.

[IITD-2 "LSTM vs GRU"]: "no conclusive evidence" is a statement about such a test. Two things are random, the
seed of the training and the text that is measured, so both are resampled: seeds, then pieces of the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = np.ndarray[Any, np.dtype[np.float64]]
LEVEL = 0.05  # a smaller p is called a difference
POWER = 0.8  # how often a difference of `Test.detectable` is found
SEEDS = 3  # with fewer, how much the seed matters is not known, and nothing is decided
ROUNDS = 10_000
_RESAMPLES = 4_000
_EXACT = 13  # up to this many blocks all signs are tried
_NODES = 400


@dataclass(frozen=True)
class Test:
    """A model compared with the best one."""

    behind: float  # how much worse it is, per unit of `sizes`
    low: float  # the 95 % interval of the difference: from this …
    high: float  # … to this; it leaves out 0 exactly where p < 0.05
    p: float  # two-sided
    detectable: float  # the smallest difference that would have been found in 80 % of such comparisons


@dataclass(frozen=True)
class Paired:
    """Two systems on the same sentences."""

    difference: float  # the first minus the second
    low: float  # the 95 % interval of the difference: from this …
    high: float  # … to this
    p: float  # two-sided


def against(
    costs: Sequence[npt.ArrayLike],
    best: Sequence[npt.ArrayLike],
    sizes: npt.ArrayLike,
    rounds: int = _RESAMPLES,
    seed: int = 0,
) -> Test:
    """Compare two models by what the pieces of a text cost them; one row of ``costs`` per seed.

    ``sizes``: of the pieces, in the unit in which `behind` is reported, such as bytes. The standard error is
    that of `resampled` differences; interval and p follow Student's distribution with the degrees of freedom
    of Welch (1947) and Satterthwaite (1946), since three seeds tell little about how much seeds differ. One
    row alone is a model that every training run would repeat.
    """
    a_KB, b_KB = np.asarray(costs, dtype=np.float64), np.asarray(best, dtype=np.float64)
    size_B = np.asarray(sizes, dtype=np.float64)
    behind = float((a_KB.mean(axis=0) - b_KB.mean(axis=0)).sum() / size_B.sum())
    if len(size_B) < 2:
        return Test(behind, -math.inf, math.inf, 1.0, math.inf)
    error = float(np.std(resampled(a_KB, b_KB, size_B, rounds, seed)))
    if error <= 1e-12 * max(abs(behind), 1e-12):  # the same difference everywhere, or none
        return Test(behind, behind, behind, float(behind == 0), 0.0)
    freedom = _freedom(a_KB, b_KB, size_B)
    if not freedom:  # nothing varies: the error is that of rounding
        return Test(behind, behind, behind, float(behind == 0), 0.0)
    reach = student_quantile(1 - LEVEL / 2, freedom)
    return Test(
        behind,
        behind - reach * error,
        behind + reach * error,
        student(behind / error, freedom),
        (reach + student_quantile(POWER, freedom)) * error,
    )


def resampled(a_KB: Array, b_KB: Array, size_B: Array, rounds: int = _RESAMPLES, seed: int = 0) -> Array:
    """Return the difference per unit in hierarchical bootstraps: seeds are drawn, then pieces of the text.

    [Efron 1979; Davison & Hinkley 1997, section 3.8]. Both models and all seeds have read the same text, so a
    round draws its pieces once for all of them. Drawing n of n shows (n - 1) / n of the variance; deviations
    are lengthened by as much.
    """
    rng = np.random.default_rng(seed)
    text_RB = _drawn(rng, len(size_B), rounds)
    values_R = np.zeros(rounds)
    for sign, costs_KB in ((1.0, a_KB), (-1.0, b_KB)):
        seeds_RK = _drawn(rng, len(costs_KB), rounds) / len(costs_KB)
        values_R += sign * np.einsum("rk,rk->r", seeds_RK, text_RB @ costs_KB.T)
    return values_R / (text_RB @ size_B)


def paired_bootstrap(
    a_NC: Array, b_NC: Array, of: Callable[[Array], Array], rounds: int = 1000, seed: int = 0
) -> Paired:
    """Compare two systems on the same sentences: draw sentences again and again, measure both on each draw.

    [Koehn 2004]. ``of``: the measure of summed counts, row by row, such as BLEU; a row of ``a_NC`` is what a
    sentence adds. p is the share of draws whose difference lies as far from their mean as the difference
    that was found lies from 0. sacrebleu counts one side of that, so its p is about half of this one.
    """
    n = len(a_NC)
    drawn_RN = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), rounds).astype(np.float64)
    difference_R = of(drawn_RN @ a_NC) - of(drawn_RN @ b_NC)
    found = float(of(a_NC.sum(axis=0, keepdims=True))[0] - of(b_NC.sum(axis=0, keepdims=True))[0])
    apart_R = np.abs(difference_R - difference_R.mean())
    low, high = np.quantile(difference_R, [LEVEL / 2, 1 - LEVEL / 2]).tolist()
    if not np.any(a_NC != b_NC):
        return Paired(0.0, 0.0, 0.0, 1.0)
    return Paired(found, low, high, float((1 + np.count_nonzero(apart_R >= abs(found))) / (1 + rounds)))


def _drawn(rng: np.random.Generator, n: int, rounds: int) -> Array:
    """Return how often each of n things is drawn when n are, in every round."""
    if n < 2:
        return np.ones((rounds, n))
    counts_RN = rng.multinomial(n, np.full(n, 1 / n), rounds).astype(np.float64)
    return 1 + (counts_RN - 1) * math.sqrt(n / (n - 1))


def _freedom(a_KB: Array, b_KB: Array, size_B: Array) -> float:
    """Return the degrees of freedom of a sum of variances: of the seeds of both models, and of the text."""
    total = size_B.sum()
    behind_B = a_KB.mean(axis=0) - b_KB.mean(axis=0)
    apart_B = behind_B - size_B * behind_B.sum() / total
    blocks = len(size_B)
    parts = [(float(apart_B @ apart_B) * blocks / (blocks - 1) / total**2, blocks - 1)]
    for costs_KB in (a_KB, b_KB):
        if len(costs_KB) > 1:
            by_seed = costs_KB.sum(axis=1) / total
            parts.append((float(np.var(by_seed, ddof=1)) / len(by_seed), len(by_seed) - 1))
    most = max(variance for variance, _ in parts) or 1.0
    shares = [(variance / most, n) for variance, n in parts]
    square = sum(share for share, _ in shares) ** 2
    return float(square / max(sum(share**2 / n for share, n in shares), 1e-12))


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
    nodes, weights = _nodes()
    half = (math.pi / 2 - theta) / 2
    angles = theta + half * (nodes + 1)
    area = half * float(weights @ np.cos(angles) ** (freedom - 1))
    beta = math.lgamma(0.5) + math.lgamma(freedom / 2) - math.lgamma((freedom + 1) / 2)
    return min(1.0, 2 * area * math.exp(-beta))


@cache
def _nodes() -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss and Legendre; finding them takes longer than all the rest."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights


def student_quantile(share: float, freedom: float) -> float:
    """Return the value below which this share (0.5 or more) of Student's distribution lies."""
    low, high = 0.0, 1.0
    while student(high, freedom) > 2 * (1 - share):
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student(middle, freedom) > 2 * (1 - share) else (low, middle)
    return (low + high) / 2


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

"""Additive smoothing: add-delta and the slide's Laplace formula.

[XMU "Sparsity problems of n-gram models", "Laplace smoothing"] The slide's trigram formula has
eps2 in the denominator where it must be eps3; with eps2 it does not sum to one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nextword.ngram.arrays import Fallback
from nextword.ngram.counts import CountTrie
from nextword.ngram.settings import NgramSettings
from nextword.ngram.smoothing.estimate import Estimate, totals, unigram_counts
from nextword.ngram.smoothing.plan import ENDLESS, NO_DISCOUNT, Plan

Array = np.ndarray[Any, np.dtype[Any]]


class Add:
    """p(w | c) = (n(c w) + delta) / (n(c) + delta M), for M tokens that can come next."""

    fallback: Fallback = "uniform"
    adjusted = False

    def plan(
        self, counts_V: Array, n_r: Callable[[int], Array], settings: NgramSettings, predictable_V: Array
    ) -> Plan:
        """Add delta M to every total and share it equally."""
        M = int(predictable_V.sum())
        extra, uniform_V = settings.delta * M, predictable_V / M
        return _plan(counts_V, [extra] * settings.order, uniform_V, uniform_V, self.fallback)

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Give every token delta; after an unseen context all tokens are equally likely."""
        M = int(predictable_V.sum())
        uniform_V = predictable_V / M
        return _mixed(
            counts, [settings.delta * M] * counts.order, uniform_V, uniform_V, predictable_V, self.fallback
        )


class Laplace:
    """The slide's formula: every order falls back to the unigram distribution.

    p(x) = (n(x) + eps1/M) / (N + eps1) and p(w | c) = (n(c w) + eps_n p(w)) / (n(c) + eps_n).
    eps = 0 gives relative frequencies (in an unseen context the unigrams), eps = inf the unigrams
    (and for order 1 the uniform distribution).
    """

    fallback: Fallback = "unigram"
    adjusted = False

    def plan(
        self, counts_V: Array, n_r: Callable[[int], Array], settings: NgramSettings, predictable_V: Array
    ) -> Plan:
        """Add eps to every total and share it in proportion to the unigrams."""
        uniform_V, eps = predictable_V / int(predictable_V.sum()), settings.per_order("eps")
        return _plan(counts_V, eps, uniform_V, _mix(counts_V, eps[0], uniform_V), self.fallback)

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Mix the unigrams with the uniform distribution, and every other order with the unigrams."""
        uniform_V = predictable_V / int(predictable_V.sum())
        eps = settings.per_order("eps")
        unigrams_V = _mix(unigram_counts(counts.levels[0], predictable_V), eps[0], uniform_V)
        return _mixed(counts, eps, uniform_V, unigrams_V, predictable_V, self.fallback)


def _plan(counts_V: Array, extra: list[float], uniform_V: Array, below_V: Array, fallback: Fallback) -> Plan:
    return Plan(
        _mix(counts_V, extra[0], uniform_V),
        [NO_DISCOUNT] * len(extra),
        [min(e, ENDLESS) for e in extra],
        fallback,
        below=below_V,
    )


def _mix(n_x: Array, eps: float, base: Array) -> Array:
    """Return (n(x) + eps p(x)) / (N + eps), also in the limit eps = inf."""
    return base if np.isinf(eps) else (n_x + eps * base) / (n_x.sum() + eps)


def _mixed(
    counts: CountTrie,
    eps: list[float],
    uniform_V: Array,
    base_V: Array,
    predictable_V: Array,
    fallback: Fallback,
) -> Estimate:
    probs = [_mix(unigram_counts(counts.levels[0], predictable_V), eps[0], uniform_V)]
    backoffs = []
    for n in range(2, counts.order + 1):
        level, e = counts.levels[n - 1], eps[n - 1]
        n_cw = level.counts.astype(np.float64)
        n_c = totals(counts, n, n_cw)
        with np.errstate(invalid="ignore"):  # 0/0 where a context ends in END: never used
            weight = np.ones(len(n_c)) if np.isinf(e) else np.where(n_c + e > 0, e / (n_c + e), 1.0)
        below = weight[counts.parents(n)] * base_V[level.words]
        seen = 0.0 if np.isinf(e) else n_cw / (n_c + e)[counts.parents(n)]
        probs.append(seen + below)
        backoffs.append(weight)
    return Estimate(probs, backoffs, fallback)

"""Maximum likelihood: plain relative frequencies. [XMU "Estimate based on frequencies"]

p(w | c) = n(c w) / n(c). A token not seen after c has probability 0, and an unseen context has no
distribution at all: the model raises an error instead of inventing one.
(On the slide's corpus n(love) = 3, so p(love) = 3/15, not the slide's 2/15.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nextword.ngram.arrays import Fallback
from nextword.ngram.counts import CountTrie
from nextword.ngram.settings import NgramSettings
from nextword.ngram.smoothing.estimate import Estimate, share, totals, unigram_counts
from nextword.ngram.smoothing.plan import NO_DISCOUNT, Plan

Array = np.ndarray[Any, np.dtype[Any]]


def relative_frequencies(counts: CountTrie, predictable_V: Array) -> list[Array]:
    """Return n(c w) / n(c) for every n-gram of every order."""
    unigrams = unigram_counts(counts.levels[0], predictable_V)
    found = [unigrams / unigrams.sum()]
    for n in range(2, counts.order + 1):
        n_cw = counts.levels[n - 1].counts.astype(np.float64)
        found.append(n_cw / totals(counts, n, n_cw)[counts.parents(n)])
    return found


class RelativeFrequencies:
    """The common plan of all three for the kernels: no count is discounted."""

    fallback: Fallback
    adjusted = False
    is_probability = True

    def weight(self, settings: NgramSettings) -> float | None:
        """Return the backoff weight of every context; None: 0 if it was seen, 1 if not."""
        return None

    def plan(
        self, counts_V: Array, n_r: Callable[[int], Array], settings: NgramSettings, predictable_V: Array
    ) -> Plan:
        """Return the plan u = n(c w) / n(c), with nothing left over."""
        return Plan(
            counts_V / counts_V.sum(),
            [NO_DISCOUNT] * settings.order,
            [0.0] * settings.order,
            self.fallback,
            weight=self.weight(settings),
            is_probability=self.is_probability,
        )


class MaximumLikelihood(RelativeFrequencies):
    """p(w | c) = n(c w) / n(c)."""

    fallback: Fallback = "none"

    def weight(self, settings: NgramSettings) -> float | None:
        """Return 0: unseen tokens get nothing."""
        return 0.0

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Return relative frequencies; the fallback has no weight."""
        none = [np.zeros(len(level)) for level in counts.levels[:-1]]
        return Estimate(relative_frequencies(counts, predictable_V), none, self.fallback)


class Backoff(RelativeFrequencies):
    """The slide's backoff: n(they love you) => n(love you). [XMU "Sparsity problems of n-gram models"]

    Tokens are dropped only while the *context* is unseen; then relative frequencies apply. A seen context
    gives nothing to tokens not seen after it, so every distribution sums to one.
    """

    fallback: Fallback = "shorter"

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Use weight 0 after a seen context, 1 after an unseen one."""
        weights = [
            1.0 - share(followers, followers)
            for followers in (
                np.diff(level.children) for level in counts.levels[:-1] if level.children is not None
            )
        ]
        return Estimate(relative_frequencies(counts, predictable_V), weights, self.fallback)


class Stupid(RelativeFrequencies):
    """Stupid backoff (Brants et al. 2007): relative frequencies, times alpha for each token dropped.

    A score, not a probability: it sums to more than one, and is marked as such wherever it is shown.
    """

    fallback: Fallback = "shorter"
    is_probability = False

    def weight(self, settings: NgramSettings) -> float | None:
        """Return alpha, always."""
        return settings.alpha

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Use the same weight after every context."""
        weights = [np.full(len(level), settings.alpha) for level in counts.levels[:-1]]
        return Estimate(
            relative_frequencies(counts, predictable_V), weights, self.fallback, is_probability=False
        )

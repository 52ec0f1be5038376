"""Maximum likelihood: relative frequencies, nothing else. [XMU "Estimate based on frequencies"]

p(w | c) = n(c w) / n(c). A word not seen after c has probability 0, and a context that was not
seen has no distribution at all: the model says so instead of inventing one.
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
    """n(c w) / n(c) for every n-gram of every order."""
    unigrams = unigram_counts(counts.levels[0], predictable_V)
    found = [unigrams / unigrams.sum()]
    for n in range(2, counts.order + 1):
        n_cw = counts.levels[n - 1].counts.astype(np.float64)
        found.append(n_cw / totals(counts, n, n_cw)[counts.parents(n)])
    return found


class RelativeFrequencies:
    """What the three have in common for the kernels: nothing is taken from any count."""

    fallback: Fallback
    adjusted = False
    is_probability = True

    def weight(self, settings: NgramSettings) -> float | None:
        """The backoff weight of every context; None: 0 where it was seen, 1 where not."""
        return None

    def plan(
        self, counts_V: Array, n_r: Callable[[int], Array], settings: NgramSettings, predictable_V: Array
    ) -> Plan:
        """u = n(c w) / n(c), and nothing is left."""
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
        """Nothing for unseen words."""
        return 0.0

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Relative frequencies; the fallback has no weight."""
        none = [np.zeros(len(level)) for level in counts.levels[:-1]]
        return Estimate(relative_frequencies(counts, predictable_V), none, self.fallback)


class Backoff(RelativeFrequencies):
    """The slide's backoff: n(they love you) => n(love you). [XMU "Sparsity problems of n-gram models"]

    Words are dropped only while the *context* is unseen; then relative frequencies. A seen context
    gives nothing to words not seen after it, so every distribution sums to one.
    """

    fallback: Fallback = "shorter"

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Weight 0 behind a context that was seen, 1 behind one that was not."""
        weights = [
            1.0 - share(followers, followers)
            for followers in (
                np.diff(level.children) for level in counts.levels[:-1] if level.children is not None
            )
        ]
        return Estimate(relative_frequencies(counts, predictable_V), weights, self.fallback)


class Stupid(RelativeFrequencies):
    """Stupid backoff (Brants et al. 2007): relative frequencies, times alpha for each word dropped.

    A score, not a probability: it sums to more than one, and is marked wherever it is shown.
    """

    fallback: Fallback = "shorter"
    is_probability = False

    def weight(self, settings: NgramSettings) -> float | None:
        """alpha, always."""
        return settings.alpha

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """The same weight behind every context."""
        weights = [np.full(len(level), settings.alpha) for level in counts.levels[:-1]]
        return Estimate(
            relative_frequencies(counts, predictable_V), weights, self.fallback, is_probability=False
        )

"""Katz backoff (1987): Good-Turing tells how much of a small count to believe.

r* = (r+1) n_{r+1} / n_r for counts up to a limit k, scaled so that the mass taken equals what
Good-Turing gives to the unseen; the rest of a context goes to the words not seen after it, in
proportion to the shorter context.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.ngram.arrays import Fallback
from nextword.ngram.counts import CountTrie
from nextword.ngram.settings import NgramSettings
from nextword.ngram.smoothing.estimate import Estimate, share, totals, unigram_counts

Array = np.ndarray[Any, np.dtype[Any]]
NEARLY_ALL = 1e-9  # so little mass on the unseen words of a context counts as none


class Katz:
    """Discounted counts where seen; otherwise the shorter context, scaled to what is left."""

    fallback: Fallback = "shorter"

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Unigrams first, then every order on top of the one below."""
        notes: list[str] = []
        probs = [_unigrams(unigram_counts(counts.levels[0], predictable_V), predictable_V, settings, notes)]
        backoffs, links = [], counts.links()
        for n in range(2, counts.order + 1):
            n_cw = counts.levels[n - 1].counts.astype(np.float64)
            parents, n_c = counts.parents(n), totals(counts, n, n_cw)
            below = probs[-1][links[n - 2]]
            covered = totals(counts, n, below)  # by the shorter context, of the words seen here
            d = good_turing(n, n_cw, settings.katz_limit, notes)[
                np.minimum(n_cw, settings.katz_limit + 1).astype(int)
            ]
            seen = d * n_cw / n_c[parents]
            left = 1.0 - totals(counts, n, seen)
            # No count small enough to discount: leave room for one more word (as SRILM does).
            full = (left < NEARLY_ALL)[parents]
            seen = np.where(full, n_cw / (n_c[parents] + 1.0), seen)
            # Every word was seen here: nothing to back off to, nothing to take.
            complete = covered > 1.0 - NEARLY_ALL
            seen = np.where(complete[parents], n_cw / n_c[parents], seen)
            left = 1.0 - totals(counts, n, seen)
            backoffs.append(np.where(n_c > 0, np.where(complete, 0.0, share(left, 1.0 - covered)), 1.0))
            probs.append(seen)
        return Estimate(probs, backoffs, self.fallback, notes=notes)


def _unigrams(n_w: Array, predictable_V: Array, settings: NgramSettings, notes: list[str]) -> Array:
    """Good-Turing over the words; what it takes goes in equal parts to the words never seen."""
    never = predictable_V & (n_w == 0)
    if not never.any():
        return np.asarray(n_w / n_w.sum())
    d = good_turing(1, n_w[n_w > 0], settings.katz_limit, notes)
    seen = d[np.minimum(n_w, settings.katz_limit + 1).astype(int)] * n_w / n_w.sum()
    if 1.0 - seen.sum() < NEARLY_ALL:
        seen = n_w / (n_w.sum() + 1.0)
    return np.asarray(seen + never * (1.0 - seen.sum()) / never.sum())


def good_turing(n: int, counts: Array, k: int, notes: list[str]) -> Array:
    """d_0 … d_{k+1}: what share of a count of r is kept; 1 above the limit k."""
    n_r = np.bincount(counts[counts <= k + 1].astype(np.int64), minlength=k + 2).astype(np.float64)
    d = np.ones(k + 2)
    while k >= 1:
        if n_r[1] > 0 and np.all(n_r[1 : k + 1] > 0):
            r = np.arange(1, k + 1)
            common = (k + 1) * n_r[k + 1] / n_r[1]
            star = (r + 1) * n_r[2 : k + 2] / n_r[1 : k + 1] / r
            with np.errstate(divide="ignore", invalid="ignore"):
                found = (star - common) / (1.0 - common)
            if np.all(np.isfinite(found)) and np.all((found > 0) & (found <= 1)):
                d[1 : k + 1] = found
                return d
        k -= 1
    notes.append(
        f"Good-Turing cannot discount the counts of {n}-grams in so small or regular a text; they are kept"
    )
    return d

"""Katz backoff (1987): Good-Turing says how much of a small count to trust.

r* = (r+1) n_{r+1} / n_r for counts up to a limit k, scaled so that the discounted mass equals what
Good-Turing gives to the unseen; the rest of a context goes to the tokens not seen after it, in
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
NEARLY_ALL = 1e-9  # less mass on the unseen tokens of a context counts as none


class Katz:
    """Discounted counts for seen n-grams; otherwise the shorter context, scaled to the mass left."""

    fallback: Fallback = "shorter"

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Estimate the unigrams first, then every order from the one below."""
        notes: list[str] = []
        probs = [_unigrams(unigram_counts(counts.levels[0], predictable_V), predictable_V, settings, notes)]
        backoffs, links = [], counts.links()
        for n in range(2, counts.order + 1):
            n_cw = counts.levels[n - 1].counts.astype(np.float64)
            parents, n_c = counts.parents(n), totals(counts, n, n_cw)
            below = probs[-1][links[n - 2]]
            covered = totals(counts, n, below)  # by the shorter context, of the tokens seen here
            d = good_turing(n, n_cw, settings.katz_limit, notes)[
                np.minimum(n_cw, settings.katz_limit + 1).astype(int)
            ]
            seen = d * n_cw / n_c[parents]
            left = 1.0 - totals(counts, n, seen)
            # No count is small enough to discount: leave room for one more token (as SRILM does).
            full = (left < NEARLY_ALL)[parents]
            seen = np.where(full, n_cw / (n_c[parents] + 1.0), seen)
            # Every token was seen here: nothing to back off to, nothing to discount.
            complete = covered > 1.0 - NEARLY_ALL
            seen = np.where(complete[parents], n_cw / n_c[parents], seen)
            left = 1.0 - totals(counts, n, seen)
            backoffs.append(np.where(n_c > 0, np.where(complete, 0.0, share(left, 1.0 - covered)), 1.0))
            probs.append(seen)
        return Estimate(probs, backoffs, self.fallback, notes=notes)


def _unigrams(n_w: Array, predictable_V: Array, settings: NgramSettings, notes: list[str]) -> Array:
    """Apply Good-Turing to the unigrams; the discounted mass goes in equal parts to unseen tokens."""
    never = predictable_V & (n_w == 0)
    if not never.any():
        return np.asarray(n_w / n_w.sum())
    d = good_turing(1, n_w[n_w > 0], settings.katz_limit, notes)
    seen = d[np.minimum(n_w, settings.katz_limit + 1).astype(int)] * n_w / n_w.sum()
    if 1.0 - seen.sum() < NEARLY_ALL:
        seen = n_w / (n_w.sum() + 1.0)
    return np.asarray(seen + never * (1.0 - seen.sum()) / never.sum())


def good_turing(n: int, counts: Array, k: int, notes: list[str]) -> Array:
    """Return d_0 … d_{k+1}: the share of a count of r that is kept; 1 above the limit k."""
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
        f"the text is too small or too regular for Good-Turing discounts of {n}-grams; none are applied"
    )
    return d

"""What a smoothing gives: probabilities and backoff weights in float64, order by order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from nextword.core.contracts import START, UNKNOWN
from nextword.ngram.arrays import Fallback, Level, Trie
from nextword.ngram.counts import CountLevel, CountTrie
from nextword.ngram.settings import NgramSettings

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Estimate:
    """Probabilities of every n-gram seen, and the weight of the fallback in every context."""

    probs: list[Array]  # float64, one array per order
    backoffs: list[Array]  # float64, one array for each order but the highest
    fallback: Fallback
    is_probability: bool = True
    notes: list[str] = field(default_factory=list)

    def trie(self, counts: CountTrie) -> Trie:
        """As stored: float32."""
        levels = []
        for n, level in enumerate(counts.levels):
            top = n == counts.order - 1
            levels.append(
                Level(
                    level.words,
                    self.probs[n].astype(np.float32),
                    None if top else self.backoffs[n].astype(np.float32),
                    None if level.children is None else as_offsets(level.children),
                )
            )
        return Trie(tuple(levels), self.fallback)


class Smoothing(Protocol):
    """A way to give unseen words a probability."""

    fallback: Fallback

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Turn counts into probabilities; `predictable_V` marks the words that can come next."""
        ...


def predictable(vocab_size: int, closed: bool) -> Array:
    """Which words can come next: never START; UNKNOWN only in an open vocabulary."""
    mask_V = np.ones(vocab_size, dtype=bool)
    mask_V[START] = False
    mask_V[UNKNOWN] = not closed
    return mask_V


def as_offsets(offsets: Array) -> Array:
    """Offsets in the smallest unsigned type that holds them."""
    large = len(offsets) > 0 and int(offsets[-1]) >= 2**32
    return offsets.astype(np.uint64 if large else np.uint32)


def widths(offsets: Array) -> Array:
    """How many extensions each n-gram has."""
    return np.asarray(np.diff(offsets.astype(np.int64)), dtype=np.int64)


def unigram_counts(level: CountLevel, predictable_V: Array, adjusted: bool = False) -> Array:
    """Counts of the words that can come next; START is never one of them."""
    return np.where(predictable_V, level.adjusted if adjusted else level.counts, 0).astype(np.float64)


def totals(counts: CountTrie, n: int, values: Array) -> Array:
    """For every context of order n-1 the sum of `values` over its extensions of order n."""
    return np.bincount(counts.parents(n), weights=values, minlength=len(counts.levels[n - 2]))


def share(part: Array, whole: Array, empty: float = 0.0) -> Array:
    """part / whole, and `empty` where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, empty)

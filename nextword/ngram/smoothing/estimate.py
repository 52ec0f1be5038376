"""The result of a smoothing: probabilities and backoff weights in float64, order by order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from nextword.core.contracts import never_next
from nextword.ngram.arrays import Fallback, Level, Trie
from nextword.ngram.counts import CountLevel, CountTrie
from nextword.ngram.settings import NgramSettings

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Estimate:
    """Probabilities of every seen n-gram, and the weight of the fallback in every context."""

    probs: list[Array]  # float64, one array per order
    backoffs: list[Array]  # float64, one array per order except the highest
    fallback: Fallback
    is_probability: bool = True
    notes: list[str] = field(default_factory=list)

    def trie(self, counts: CountTrie) -> Trie:
        """Convert to the stored form: float32."""
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
    """A way to give unseen tokens a probability."""

    fallback: Fallback

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Turn counts into probabilities; `predictable_V` marks the tokens that can come next."""
        ...


def predictable(vocab_size: int, closed: bool) -> Array:
    """Return which tokens can come next: all but those of `never_next`."""
    mask_V = np.ones(vocab_size, dtype=bool)
    mask_V[list(never_next(closed))] = False
    return mask_V


def as_offsets(offsets: Array) -> Array:
    """Convert offsets to the smallest unsigned type that holds them."""
    large = len(offsets) > 0 and int(offsets[-1]) >= 2**32
    return offsets.astype(np.uint64 if large else np.uint32)


def widths(offsets: Array) -> Array:
    """Return the number of extensions of each n-gram."""
    return np.asarray(np.diff(offsets.astype(np.int64)), dtype=np.int64)


def unigram_counts(level: CountLevel, predictable_V: Array, adjusted: bool = False) -> Array:
    """Return the counts of the tokens that can come next; START never can."""
    return np.where(predictable_V, level.adjusted if adjusted else level.counts, 0).astype(np.float64)


def totals(counts: CountTrie, n: int, values: Array) -> Array:
    """Sum `values` over the extensions of order n of every context of order n-1."""
    return np.bincount(counts.parents(n), weights=values, minlength=len(counts.levels[n - 2]))


def share(part: Array, whole: Array, empty: float = 0.0) -> Array:
    """Return part / whole, and `empty` where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, part / whole, empty)

"""Count every n-gram of a text, of all orders, into a trie of counts.

The plain version of the kernels: short, exact, and fast enough for a few megabytes.
[XMU "Word Frequency"] The slide's n(x_i, …, x_{i+n}) has n+1 tokens; an n-gram here has n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.core.contracts import END, START

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class CountLevel:
    """The n-grams of one order, sorted by their tokens, as in `arrays.Level`."""

    words: Array  # int32
    counts: Array  # occurrences of each n-gram
    adjusted: Array  # number of distinct tokens before it (its count if it starts with START)
    children: Array | None  # start of each node's extensions in the next level

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True)
class CountTrie:
    """The counts of all orders 1 … N; level 1 has a node for every token of the vocabulary."""

    levels: tuple[CountLevel, ...]
    vocab_size: int

    @property
    def order(self) -> int:
        """N: the longest n-gram."""
        return len(self.levels)

    def parents(self, n: int) -> Array:
        """Return, for every n-gram of order n, its context's node in level n-1."""
        children = self.levels[n - 2].children
        assert children is not None
        return np.repeat(np.arange(len(children) - 1), np.diff(children))

    def links(self) -> list[Array]:
        """Return, for every n-gram of order 2 … N, the node of the same n-gram without its first token."""
        found = [self.levels[1].words.astype(np.int64)] if self.order > 1 else []
        for n in range(3, self.order + 1):
            below = self.levels[n - 2]
            keys = self.parents(n - 1) * self.vocab_size + below.words
            wanted = found[-1][self.parents(n)] * self.vocab_size + self.levels[n - 1].words
            found.append(np.searchsorted(keys, wanted))
        return found


def count(ids: Array, vocab_size: int, order: int) -> CountTrie:
    """Count all n-grams up to `order` of a packed text ``START w … END START w … END``."""
    ids = np.asarray(ids, dtype=np.int64)
    starts = np.arange(len(ids))  # where the n-grams of the current order start
    nodes = ids  # the node of the n-gram at each start
    levels: list[CountLevel] = []
    below: CountLevel | None = None
    for n in range(1, order + 1):
        if n == 1:
            words, counts = np.arange(vocab_size), np.bincount(ids, minlength=vocab_size)
        else:
            assert below is not None
            # An n-gram continues unless its last token is END; then the next token joins it.
            resumes = ids[starts + n - 2] != END
            starts, nodes = starts[resumes], nodes[resumes]
            keys, nodes, counts = np.unique(
                nodes * vocab_size + ids[starts + n - 1], return_inverse=True, return_counts=True
            )
            words = keys % vocab_size
            width = np.bincount(keys // vocab_size, minlength=len(below))
            levels[-1] = CountLevel(below.words, below.counts, below.adjusted, _offsets(width))
        adjusted = _left_neighbours(ids, starts, nodes, counts, vocab_size)
        below = CountLevel(words.astype(np.int32), counts, adjusted, None)
        levels.append(below)
    return CountTrie(tuple(levels), vocab_size)


def _offsets(width: Array) -> Array:
    return np.concatenate([[0], np.cumsum(width)])


def _left_neighbours(ids: Array, starts: Array, nodes: Array, counts: Array, vocab_size: int) -> Array:
    """Return the number of distinct tokens before each n-gram; its count if it starts with START."""
    inside = ids[starts] != START  # everything else is preceded by a token or START
    pairs = np.unique(nodes[inside] * vocab_size + ids[starts[inside] - 1])
    adjusted = np.bincount(pairs // vocab_size, minlength=len(counts))
    leads = np.zeros(len(counts), dtype=bool)
    leads[nodes[~inside]] = True
    return np.where(leads, counts, adjusted)

"""Counts recovered from stored probabilities: an n-gram model keeps only p and backoff weights.

With u = p - gamma p_below, a smoothing that subtracts D(n) from a count n has u = (n - D(n)) / n(c). The
smallest whole numbers that fit all followers of a context exactly are its counts. [XMU "Estimate based on
frequencies"; Chen and Goodman 1998]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from nextword.core.contracts import END, START
from nextword.models.distributions import as_numpy
from nextword.ngram.model import NgramModel
from nextword.ngram.settings import NgramSettings

Array = np.ndarray[Any, np.dtype[Any]]
DISCOUNTED = ("absolute", "kneser-ney", "modified-kneser-ney")
FREQUENCIES = ("mle", "backoff", "stupid")
_EXACT = 4e-6  # tolerance of u: probabilities are stored in float32
_MOST = 60  # the largest count that the rarest follower of a context is tried with
_CONTEXTS = 200  # from which discounts are found
_FOLLOWERS = 4  # of each at least: then one of them was nearly always seen once


@dataclass(frozen=True)
class Counted:
    """How often each follower of a context and the context itself were seen; the discount of each count."""

    counts_F: Array
    total: int
    discounts_F: Array


class Recounter:
    """The counts of one model; ``tokens`` of its training text and its settings, where they are known."""

    def __init__(
        self, model: NgramModel, tokens: int | None = None, settings: NgramSettings | None = None
    ) -> None:
        self.model, self.tokens, self.settings = model, tokens, settings
        self.discounts = cache(self._discounts)

    def count(self, context: Array) -> Counted | None:
        """Count all followers of a context that was seen; None where the arrays do not determine them."""
        smoothing, node = self.model.smoothing, self.node(context.tolist())
        if node is None:
            return None
        words_F, probs_F, gamma = followers(self.model, len(context), node)
        if smoothing in FREQUENCIES:
            return self._frequencies(context, probs_F)
        u_F = probs_F.astype(np.float64) - gamma * self.below(context)[words_F]
        if smoothing in DISCOUNTED and not self._is_pruned:
            return self._discounted(u_F, len(context) + 1)
        if smoothing == "witten-bell" and 0 < gamma < 1:  # gamma = T / (n + T)
            return _added(u_F, gamma, float(len(u_F)))
        if smoothing in ("add", "laplace") and 0 < gamma < 1 and self.settings is not None:
            return _added(u_F, gamma, self._extra(len(context) + 1))
        return None

    def below(self, context: Array) -> Array:
        """Return the distribution mixed in: of the shorter context, of single tokens, or uniform."""
        model = self.model
        if model.trie.fallback == "uniform":
            return np.full(model.vocab_size, 1.0 / (model.vocab_size - 1 - int(model.closed)))
        if model.trie.fallback == "unigram" or len(context) == 1:
            return model.trie.levels[0].probs.astype(np.float64)
        state = model.score(context[None, 1:], np.array([len(context) - 1]), model.start(1, begin=False))[1]
        return np.exp(as_numpy(model.next(state), np.float64)[0])

    def node(self, words: list[int]) -> int | None:
        """Tell where an n-gram stands in its level; None: it was not seen."""
        node = words[0]
        for n, word in enumerate(words[1:], start=1):
            followed, _, _ = followers(self.model, n, node)
            place = int(np.searchsorted(followed, word))
            if place >= len(followed) or int(followed[place]) != word:
                return None
            children = self.model.trie.levels[n - 1].children
            assert children is not None
            node = int(children[node]) + place
        return node

    def words(self, level: int, node: int) -> Array:
        """Return the words of a node of a level: the inverse."""
        found = []
        for n in range(level, 1, -1):
            found.append(int(self.model.trie.levels[n - 1].words[node]))
            children = self.model.trie.levels[n - 2].children
            assert children is not None
            node = int(np.searchsorted(children, node, side="right")) - 1
        return np.array([node, *reversed(found)], dtype=np.int64)

    def frequency(self, words: list[int]) -> int | None:
        """Tell how often words came together, from relative frequencies: N p(w1) p(w2 | w1) …"""
        if self.tokens is None:
            return None
        first = END if words[0] == START else words[0]
        times = self.tokens * float(self.model.trie.levels[0].probs[first])
        for n in range(2, len(words) + 1):
            node = self.node(words[:n])
            if node is None:
                return None
            times *= float(self.model.trie.levels[n - 1].probs[node])
        return round(times)

    @property
    def _is_pruned(self) -> bool:
        return self.settings is not None and any(self.settings.per_order("prune"))

    def _frequencies(self, context: Array, probs_F: Array) -> Counted | None:
        total = self.frequency(context.tolist())
        if total is None:
            return None
        return Counted(np.round(probs_F * total).astype(np.int64), total, np.zeros(len(probs_F)))

    def _extra(self, order: int) -> float:
        """Return what is added to the total of every context."""
        assert self.settings is not None
        if self.model.smoothing == "laplace":
            return float(self.settings.per_order("eps")[order - 1])
        return float(self.settings.delta) * (self.model.vocab_size - 1 - int(self.model.closed))

    def _discounted(self, u_F: Array, order: int) -> Counted | None:
        D = self.discounts(order)
        return None if D is None else fitted(u_F, D)

    def _discounts(self, order: int) -> Array | None:
        """Find D(0 … 3+) of an order: followers seen once, twice, … have u in ratios shared by all contexts.

        (2 - D2) / (1 - D1), (3 - D3) / (1 - D1), and from there on in steps of 1 / (1 - D1). With one D for
        all, gamma = D T / n, so that n(c w) / n(c) = u + gamma / T; the smallest n that fits gives D.
        """
        level = self.model.trie.levels[order - 2]
        assert level.children is not None
        wide = np.flatnonzero(np.diff(level.children.astype(np.int64)) >= _FOLLOWERS)
        ratios, single = [], []
        for node in wide[np.linspace(0, len(wide) - 1, min(_CONTEXTS, len(wide))).astype(np.int64)]:
            context = self.words(order - 1, int(node))
            words_F, probs_F, gamma = followers(self.model, order - 1, int(node))
            u_F = probs_F.astype(np.float64) - gamma * self.below(context)[words_F]
            if u_F.min() > 0:
                ratios.append(u_F / u_F.min())
                plain = fitted(u_F + gamma / len(u_F), np.zeros(4))
                single += [] if plain is None else [gamma * plain.total / len(u_F)]
        if self.model.smoothing == "modified-kneser-ney":
            return _from_ratios(np.concatenate(ratios)) if ratios else None
        return np.array([0.0, *[max(single)] * 3]) if single else None


def followers(model: NgramModel, length: int, node: int) -> tuple[Array, Array, float]:
    """Return the words that were seen after a context, their probabilities, and what is left for others."""
    level, above = model.trie.levels[length - 1], model.trie.levels[length]
    assert level.children is not None
    assert level.backoffs is not None
    first, last = int(level.children[node]), int(level.children[node + 1])
    return above.words[first:last], above.probs[first:last], float(level.backoffs[node])


def _from_ratios(ratios: Array) -> Array | None:
    """Return the discounts from the ratios that are frequent; None where they do not fit together."""
    ratios = np.sort(ratios[ratios > 1.0005])
    if not len(ratios):
        return np.array([0.0, 0.5, 1.0, 1.5])  # all followers were seen once: any discounts fit
    starts = np.flatnonzero(np.concatenate([[True], np.diff(ratios) > 3e-4 * ratios[1:]]))
    sizes = np.diff(np.append(starts, len(ratios)))
    centres = np.array([float(ratios[a : a + n].mean()) for a, n in zip(starts, sizes, strict=True)])
    steady = centres[sizes >= max(2, 0.02 * sizes.max())]
    if len(steady) < 3:
        return None
    second, third, fourth = steady[:3].tolist()
    once = 1.0 / (fourth - third)  # 1 - D1
    D = np.array([0.0, 1.0 - once, 2.0 - second * once, 3.0 - third * once])
    return D if np.all((D[1:] > 0) & (D[1:] < [1, 2, 3])) else None


def _added(u_F: Array, gamma: float, extra: float) -> Counted | None:
    """Solve gamma = extra / (n + extra) and u = n(c w) / (n + extra) for whole counts."""
    if not np.isfinite(extra):
        return None
    total = extra * (1 - gamma) / gamma
    counts_F = u_F * (total + extra)
    near_F = np.round(counts_F)
    if np.abs(counts_F - near_F).max() > 0.05 or abs(near_F.sum() - total) > 0.05 + 1e-3 * total:
        return None
    return Counted(near_F.astype(np.int64), int(near_F.sum()), np.zeros(len(near_F)))


def fitted(u_F: Array, D: Array) -> Counted | None:
    """Try 1, 2, … as the count of the rarest follower until all others come out whole and add up."""
    least = float(u_F.min())
    for rarest in range(1, _MOST + 1 if least > 0 else 1):
        total = (rarest - float(D[min(rarest, 3)])) / least
        kept_F = u_F * total  # n - D(n)
        many_F = np.maximum(3.0, np.round(kept_F + D[3]))
        tried_3F = np.stack([np.full(len(u_F), 1.0), np.full(len(u_F), 2.0), many_F])
        nearest_F = np.argmin(np.abs(tried_3F - D[1:, None] - kept_F), axis=0)
        counts_F = np.take_along_axis(tried_3F, nearest_F[None], axis=0)[0]
        whole = float(counts_F.sum())
        taken_F = D[np.minimum(counts_F, 3).astype(np.int64)]
        if np.abs(u_F - (counts_F - taken_F) / whole).max() < _EXACT:
            return Counted(counts_F.astype(np.int64), int(whole), taken_F)
    return None

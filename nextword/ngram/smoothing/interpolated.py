"""Smoothings that discount every count and mix in the shorter context.

p(w | c) = u(w | c) + gamma(c) p(w | c without its first token): a subclass only defines the discount.
The recursion down to the unigrams, and from there to the uniform distribution, is here.
(Chen and Goodman 1998, section 2.8)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nextword.core.contracts import UNKNOWN
from nextword.ngram.arrays import Fallback
from nextword.ngram.counts import CountTrie
from nextword.ngram.settings import NgramSettings
from nextword.ngram.smoothing.estimate import Estimate, share, unigram_counts
from nextword.ngram.smoothing.plan import Plan

Array = np.ndarray[Any, np.dtype[Any]]


class Interpolated:
    """Absolute discounting (Ney, Essen and Kneser 1994): D from every count, and the shared recursion.

    With T(c) distinct tokens after c, u = (n - D(n)) / (n(c) + kinds T(c)), and gamma is the rest.
    """

    fallback: Fallback = "shorter"
    adjusted = False  # True: lower orders count distinct left neighbours (Kneser-Ney)
    kinds = 0.0  # 1: every distinct token after a context counts as one new token (Witten-Bell)

    def discounts(self, n: int, n_r: Array, settings: NgramSettings, small: list[int]) -> Array:
        """Return D(0 … 3+) of order n, from the number of n-grams seen r times: D = n1 / (n1 + 2 n2).

        An order with too little text to estimate them is added to `small`.
        """
        n1, n2 = float(n_r[1]), float(n_r[2])
        if n1 <= 0 or n2 <= 0:
            small.append(n)
            return np.array([0.0] + [settings.discounts[0]] * 3)
        return np.array([0.0] + [n1 / (n1 + 2 * n2)] * 3)

    def plan(
        self, counts_V: Array, n_r: Callable[[int], Array], settings: NgramSettings, predictable_V: Array
    ) -> Plan:
        """Return the discounts of every order, for the kernels."""
        small: list[int] = []
        D = [self.discounts(n, n_r(n), settings, small) for n in range(1, settings.order + 1)]
        return Plan(
            self.unigrams(counts_V, D[0], predictable_V, settings.unknown),
            D,
            [0.0] * settings.order,
            self.fallback,
            kinds=self.kinds,
            adjusted=self.adjusted,
            notes=_too_small(small, settings, predictable_V),
        )

    def estimate(self, counts: CountTrie, settings: NgramSettings, predictable_V: Array) -> Estimate:
        """Estimate the unigrams first; every higher order mixes in the one below."""
        small: list[int] = []
        links, thresholds = counts.links(), settings.per_order("prune")
        c = unigram_counts(counts.levels[0], predictable_V, self.adjusted and counts.order > 1)
        D = self._discounts(1, c, counts, settings, small)
        probs = [self.unigrams(c, D, predictable_V, settings.unknown)]
        backoffs: list[Array] = []
        for n in range(2, counts.order + 1):
            level, parents, contexts = counts.levels[n - 1], counts.parents(n), len(counts.levels[n - 2])
            c = (level.adjusted if self.adjusted and n < counts.order else level.counts).astype(np.float64)
            u, gamma = self.split(c, parents, contexts, self._discounts(n, c, counts, settings, small))
            if thresholds[n - 1] > 0:  # the mass of dropped n-grams goes to the shorter context, as in lmplz
                gamma = gamma + np.bincount(
                    parents, u * (level.counts <= thresholds[n - 1]), minlength=contexts
                )
            probs.append(u + gamma[parents] * probs[-1][links[n - 2]])
            backoffs.append(gamma)
        return Estimate(probs, backoffs, self.fallback, notes=_too_small(small, settings, predictable_V))

    def unigrams(self, c: Array, D: Array, predictable_V: Array, unknown: str = "share") -> Array:
        """Return p of every token without context: the discounted mass is shared equally by all tokens.

        An equal share is little for UNKNOWN, which stands for all tokens never seen; Good-Turing gives it
        the total probability of tokens seen once, n1 / N.
        """
        u, gamma = self.split(c, np.zeros(len(c), dtype=np.int64), 1, D)
        p_V = np.asarray(u + gamma[0] * predictable_V / predictable_V.sum())
        new = float(np.sum(c == 1) / c.sum())
        if unknown == "good-turing" and predictable_V[UNKNOWN] and c[UNKNOWN] == 0 and 0 < new < 1:
            p_V *= (1.0 - new) / (1.0 - p_V[UNKNOWN])
            p_V[UNKNOWN] = new
        return p_V

    def split(self, c: Array, parents: Array, contexts: int, D: Array) -> tuple[Array, Array]:
        """Return u of every n-gram from the counts c, and gamma of every context."""
        taken = np.minimum(D[np.minimum(c, 3).astype(np.int64)], c)
        kinds = self.kinds * np.bincount(parents, weights=c > 0, minlength=contexts)
        total = np.bincount(parents, weights=c, minlength=contexts) + kinds
        gamma = share(np.bincount(parents, weights=taken, minlength=contexts) + kinds, total, empty=1.0)
        return share(c - taken, total[parents]), gamma

    def _discounts(
        self, n: int, c: Array, counts: CountTrie, settings: NgramSettings, small: list[int]
    ) -> Array:
        n_r = np.bincount(c[c < 5].astype(np.int64), minlength=5).astype(np.float64)
        if settings.kenlm_compat and self.adjusted and n < counts.order:
            n_r = as_lmplz_counts(n_r, *lmplz_last(counts)[n - 1])
        return self.discounts(n, n_r, settings, small)


class WittenBell(Interpolated):
    """Witten-Bell (1991): a context followed by many distinct tokens expects new ones.

    gamma(c) = T(c) / (T(c) + n(c)), with T(c) the number of distinct tokens seen after c.
    """

    kinds = 1.0

    def discounts(self, n: int, n_r: Array, settings: NgramSettings, small: list[int]) -> Array:
        """Return zeros: single counts are not discounted."""
        return np.zeros(4)


class Absolute(Interpolated):
    """Absolute discounting: the same D from every raw count."""


class KneserNey(Interpolated):
    """Kneser-Ney (1995): a lower order counts in how many *distinct* contexts a token was seen."""

    adjusted = True


class ModifiedKneserNey(KneserNey):
    """Modified Kneser-Ney (Chen and Goodman 1998): separate discounts for counts of 1, 2 and more."""

    def discounts(self, n: int, n_r: Array, settings: NgramSettings, small: list[int]) -> Array:
        """Return D(r) = r - (r+1) Y n_{r+1} / n_r with Y = n1 / (n1 + 2 n2). (their equation 26)"""
        return modified_discounts(n, n_r, settings, small)


def modified_discounts(n: int, n_r: Array, settings: NgramSettings, small: list[int]) -> Array:
    """Return the three discounts of one order, or the fallback if the text is too small for them."""
    fallback = np.array([0.0, *settings.discounts])
    if np.any(n_r[1:4] <= 0):
        small.append(n)
        return fallback
    Y = n_r[1] / (n_r[1] + 2.0 * n_r[2])
    r = np.arange(1, 4)
    D = r - (r + 1) * Y * n_r[2:5] / n_r[1:4]
    if not np.all((D >= 0) & (r >= D)):
        small.append(n)
        return fallback
    return np.concatenate([[0.0], D])


def as_lmplz_counts(n_r: Array, adjusted: int, plain: int) -> Array:
    """Return counts of counts with one n-gram counted by its plain instead of its adjusted count."""
    changed = n_r.copy()
    for value, change in ((adjusted, -1), (plain, +1)):
        if 0 < value < 5:
            changed[value] += change
    return changed


def lmplz_last(counts: CountTrie) -> list[tuple[int, int]]:
    """Reproduce lmplz's quirk: the last n-gram of each lower order is counted by its plain count.

    Last means: by the last token, then the token before it, and so on, tokens in order of first
    occurrence, as lmplz numbers them. Returns (adjusted, plain) for each order below the highest.
    """
    # Extend the largest last token to the left by its largest predecessor, order by order.
    found: list[tuple[int, int]] = []
    words: list[int] = []
    for n in range(1, counts.order):
        if words and words[0] == 1:  # START: lmplz stops there
            found.append((0, 0))
            continue
        words = _largest_extension(counts, words, n)
        node = _node(counts, words)
        level = counts.levels[n - 1]
        found.append((int(level.adjusted[node]), int(level.counts[node])))
    return found


def _largest_extension(counts: CountTrie, words: list[int], n: int) -> list[int]:
    """Return the n-gram that ends in these tokens and has the largest token before them."""
    if not words:
        return [int(np.flatnonzero(counts.levels[0].counts)[-1])]
    level = counts.levels[n - 1]
    ends = np.flatnonzero(level.words == words[-1])
    paths = np.empty((len(ends), n), dtype=np.int64)
    paths[:, -1] = words[-1]
    at = ends
    for k in range(n - 1, 0, -1):
        children = counts.levels[k - 1].children
        assert children is not None
        at = np.searchsorted(children, at, side="right") - 1
        paths[:, k - 1] = counts.levels[k - 1].words[at]
    paths = paths[(paths[:, 1:] == np.array(words)).all(axis=1)]
    return [int(w) for w in paths[np.argmax(paths[:, 0])]]


def _node(counts: CountTrie, words: list[int]) -> int:
    """Return the node of an n-gram known to exist."""
    node = words[0]
    for k, word in enumerate(words[1:], start=1):
        children = counts.levels[k - 1].children
        assert children is not None
        first, last = int(children[node]), int(children[node + 1])
        node = first + int(np.searchsorted(counts.levels[k].words[first:last], word))
    return node


def _too_small(orders: list[int], settings: NgramSettings, predictable_V: Array) -> list[str]:
    """Return one note for all orders whose discounts could not be estimated.

    Every subword or character occurs often, so order 1 of a closed vocabulary says nothing about the text.
    """
    if not predictable_V[UNKNOWN]:
        orders = [n for n in orders if n > 1]
    if not orders:
        return []
    named = " and ".join(
        [", ".join(f"{n}" for n in orders[:-1]), str(orders[-1])] if orders[1:] else [str(orders[0])]
    )
    return [
        f"the text is too small or too regular to estimate the discounts of order {named}; "
        f"'model.discounts' {settings.discounts} is used instead"
    ]

"""Make models smaller: drop n-grams that are too rare, or that hardly change perplexity.

Storage is one of the slides' two weaknesses of n-grams. [XMU "Main weaknesses of n-gram models"]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import END, START
from nextword.core.errors import ConfigError, DamagedError
from nextword.ngram.arrays import Level, Trie
from nextword.ngram.counts import CountTrie
from nextword.ngram.settings import NgramSettings
from nextword.ngram.smoothing.estimate import as_offsets, widths

Array = np.ndarray[Any, np.dtype[Any]]
PRUNABLE = ("katz", "stupid", "witten-bell", "absolute", "kneser-ney", "modified-kneser-ney")
SMALL = 600_000  # up to this many n-grams NumPy is quicker than loading the kernels


def check(settings: NgramSettings) -> None:
    """Raise a ConfigError if the smoothing has no shorter context to give the mass to."""
    if settings.smoothing not in PRUNABLE and (any(settings.per_order("prune")) or settings.prune_entropy):
        raise ConfigError(
            f"'model.prune' does not work with 'model.smoothing' {settings.smoothing}, which has no shorter "
            f"context for the probability of dropped n-grams; use one of {', '.join(PRUNABLE)}"
        )
    if settings.smoothing == "stupid" and settings.prune_entropy:
        raise ConfigError(
            "'model.prune_entropy' needs probabilities, but 'stupid' gives scores; use 'model.prune'"
        )


def by_count(trie: Trie, counts: list[Array], settings: NgramSettings) -> Trie:
    """Drop every n-gram whose count is at most its order's threshold."""
    thresholds = settings.per_order("prune")
    if not any(thresholds):
        return trie
    keep = [level > t for level, t in zip(counts, thresholds, strict=True)]
    keep[0] = np.ones(len(keep[0]), dtype=bool)  # every token keeps its node
    trie = drop(trie, keep)
    # Interpolated smoothings have already moved the mass; Katz must be normalized again.
    return normalised(trie) if settings.smoothing == "katz" else trie


def drop(trie: Trie, keep: list[Array]) -> Trie:
    """Return the trie without some n-grams; a dropped n-gram takes its extensions with it."""
    levels: list[Level] = []
    for n, level in enumerate(trie.levels):
        mask = keep[n]
        if n > 0:
            before, above = trie.levels[n - 1], keep[n - 1]
            assert before.children is not None
            parents = np.repeat(np.arange(len(before)), widths(before.children))
            mask = keep[n] = mask & above[parents]
            width = np.bincount(parents[mask], minlength=len(before))[above]
            levels[-1] = Level(
                levels[-1].words,
                levels[-1].probs,
                levels[-1].backoffs,
                as_offsets(np.concatenate([[0], np.cumsum(width)])),
            )
        levels.append(
            Level(
                level.words[mask],
                level.probs[mask],
                None if level.backoffs is None else level.backoffs[mask],
                None,
            )
        )
    return Trie(tuple(levels), trie.fallback)


def normalised(trie: Trie) -> Trie:
    """Recompute backoff weights so that every context sums to one: mass left, over mass left below."""
    levels = list(trie.levels)
    shorter = links(trie)
    for n in range(1, trie.order):
        level, above = levels[n - 1], levels[n]
        left, below = _left(level, above, np.asarray(levels[n - 1].probs, dtype=np.float64)[shorter[n - 1]])
        weights = np.where(below > 1e-12, left / np.maximum(below, 1e-12), 0.0)
        assert level.children is not None
        weights = np.where(widths(level.children) > 0, weights, 1.0)
        levels[n - 1] = Level(level.words, level.probs, weights.astype(np.float32), level.children)
    return Trie(tuple(levels), trie.fallback)


def by_entropy(trie: Trie, threshold: float) -> Trie:
    """Drop the n-grams whose removal raises perplexity by less than this share (Stolcke 1998).

    Works from the longest n-grams down: one that is the start or end of a kept one is kept.
    """
    if threshold <= 0:
        return trie
    for n in range(trie.order, 1, -1):
        keep = [np.ones(len(level), dtype=bool) for level in trie.levels]
        keep[n - 1] = _worth(trie, n) > threshold
        children = trie.levels[n - 1].children
        if children is not None:
            keep[n - 1] |= widths(children) > 0
            keep[n - 1][links(trie)[n - 1]] = True  # the end of a longer one is kept, too
        trie = normalised(drop(trie, keep))
    return trie


def _worth(trie: Trie, n: int) -> Array:
    """Return exp(D) - 1 for every n-gram of order n: the relative rise of perplexity without it."""
    context, level = trie.levels[n - 2], trie.levels[n - 1]
    assert context.children is not None
    assert context.backoffs is not None
    parents = np.repeat(np.arange(len(context)), widths(context.children))
    p, q = level.probs.astype(np.float64), context.probs.astype(np.float64)[links(trie)[n - 2]]
    left, below = _left(context, level, q)
    old = np.maximum(context.backoffs.astype(np.float64), 1e-300)[parents]
    new = (left[parents] + p) / np.maximum(below[parents] + q, 1e-12)  # the weight without this one
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.log(new) - np.log(old)
        D = -_marginals(trie, n - 1)[parents] * (
            p * (np.log(q) + np.log(new) - np.log(p)) + left[parents] * change
        )
    worth: Array = np.expm1(np.nan_to_num(D, nan=np.inf, posinf=np.inf))
    return worth


def _marginals(trie: Trie, n: int) -> Array:
    """Return the marginal p of every n-gram of order n; START is as frequent as END."""
    p = trie.levels[0].probs.astype(np.float64)
    p[START] = p[END]
    for k in range(1, n):
        children = trie.levels[k - 1].children
        assert children is not None
        p = np.repeat(p, widths(children)) * trie.levels[k].probs
    return p


def _left(level: Level, above: Level, below_of_seen: Array) -> tuple[Array, Array]:
    """Return the mass a context leaves to unseen tokens, and the mass the shorter context gives them."""
    assert level.children is not None
    parents = np.repeat(np.arange(len(level)), widths(level.children))
    seen = np.bincount(parents, weights=above.probs, minlength=len(level))
    below = np.bincount(parents, weights=below_of_seen, minlength=len(level))
    return np.maximum(1.0 - seen, 0.0), np.maximum(1.0 - below, 0.0)


def links(trie: Trie, plain: bool | None = None) -> list[Array]:
    """Return, for every n-gram of order 2 … N, the node of the same n-gram without its first token."""
    if not (sum(trie.sizes) <= SMALL if plain is None else plain):
        return _links_compiled(trie)
    from nextword.ngram.counts import CountLevel

    as_counts = CountTrie(
        tuple(
            CountLevel(
                level.words,
                level.words,
                level.words,
                None if level.children is None else level.children.astype(np.int64),
            )
            for level in trie.levels
        ),
        trie.vocab_size,
    )
    return as_counts.links()


def _links_compiled(trie: Trie) -> list[Array]:
    from nextword.ngram.fast import bitfield_kernels

    found = [trie.levels[1].words.astype(np.int64)] if trie.order > 1 else []
    for n in range(3, trie.order + 1):
        context, below, level = trie.levels[n - 2], trie.levels[n - 3], trie.levels[n - 1]
        found.append(np.empty(len(level), dtype=np.int64))
        assert context.children is not None
        assert below.children is not None
        if not bitfield_kernels.links(
            context.children, level.words, found[-2], below.children, context.words, found[-1]
        ):
            raise DamagedError(f"a {n}-gram is there, but not without its first token; train the run again")
    return found

"""Estimate an n-gram model from a packed text: count, smooth, prune.

Two paths with the same numbers: plain NumPy for small texts, which needs no compilation, and the
kernels for large ones. A test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.core.events import Done, Event, Note, Stage, result_of
from nextword.ngram import prune, quantizing
from nextword.ngram.arrays import Trie
from nextword.ngram.counts import CountTrie, count
from nextword.ngram.model import NgramModel
from nextword.ngram.settings import NgramSettings
from nextword.ngram.smoothing.estimate import Estimate, predictable
from nextword.ngram.smoothing.interpolated import Interpolated, as_lmplz_counts, lmplz_last
from nextword.ngram.smoothing.plan import Planned

Array = np.ndarray[Any, np.dtype[Any]]
SMALL = 600_000  # ids: about 2 MB of text, below which compiling takes longer than counting


def estimate(counts: CountTrie, settings: NgramSettings, closed: bool) -> Estimate:
    """Return probabilities in float64, by the smoothing in the settings."""
    found: Estimate = _smoothing(settings).estimate(counts, settings, predictable(counts.vocab_size, closed))
    return found


def fit(ids: Array, vocab_size: int, settings: NgramSettings, closed: bool = False) -> Iterator[Event]:
    """Build the model of a packed text; the last event is ``Done(model)``."""
    check(settings)
    plain = len(ids) <= SMALL
    if not plain and _cold():
        yield Note("compiling the n-gram kernels on their first use, which takes a few seconds")
    yield Stage(f"counting n-grams up to order {settings.order}", len(ids), "tokens")
    if plain:
        counts = count(ids, vocab_size, settings.order)
        yield Stage(f"smoothing by {settings.smoothing}")
        model, notes = _smoothed(counts, settings, closed)
    else:
        model, notes = _fit_fast(ids, vocab_size, settings, closed)
    for note in notes:
        yield Note(note)
    yield Done(model)


def check(settings: NgramSettings) -> None:
    """Raise a ConfigError for settings that contradict each other, before anything is counted."""
    prune.check(settings)
    quantizing.check(settings)
    if settings.unknown == "share":
        return
    if settings.kenlm_compat:
        raise ConfigError(
            f"'model.unknown' {settings.unknown} differs from lmplz; remove 'model.kenlm_compat'"
        )
    if not isinstance(_smoothing(settings), Interpolated):
        raise ConfigError(
            f"'model.unknown' {settings.unknown} does not work with 'model.smoothing' {settings.smoothing}; "
            "use witten-bell, absolute, kneser-ney or modified-kneser-ney"
        )


def build(ids: Array, vocab_size: int, settings: NgramSettings, closed: bool = False) -> NgramModel:
    """Return the model of a packed text, without events."""
    model: NgramModel = result_of(fit(ids, vocab_size, settings, closed))
    return model


def _smoothing(settings: NgramSettings) -> Any:
    return catalog.find("smoothing", settings.smoothing)()


def _smoothed(counts: CountTrie, settings: NgramSettings, closed: bool) -> tuple[NgramModel, list[str]]:
    found = estimate(counts, settings, closed)
    trie = prune.by_count(found.trie(counts), [level.counts for level in counts.levels], settings)
    return _model(trie, settings, closed, found.is_probability), found.notes


def _model(trie: Trie, settings: NgramSettings, closed: bool, is_probability: bool = True) -> NgramModel:
    trie = prune.by_entropy(trie, settings.prune_entropy)
    return NgramModel(trie, settings.smoothing, is_probability, closed)


def _cold() -> bool:
    """Return whether the kernels must be compiled first."""
    from nextword.ngram.fast import kernels

    return not kernels.is_cached()


def _fit_fast(
    ids: Array, vocab_size: int, settings: NgramSettings, closed: bool
) -> tuple[NgramModel, list[str]]:
    from nextword.ngram.fast import estimate as fast  # compiled

    smoothing, thresholds = _smoothing(settings), settings.per_order("prune")
    if not isinstance(smoothing, Planned):
        return _smoothed(fast.count(ids, vocab_size, settings.order, adjusted=False).trie(), settings, closed)
    compat = settings.kenlm_compat and smoothing.adjusted
    raw = not smoothing.adjusted or compat or any(thresholds)
    flat = fast.count(ids, vocab_size, settings.order, smoothing.adjusted, raw)
    quirk = lmplz_last(flat.trie()) if compat else []
    mask_V = predictable(vocab_size, closed)

    def values(n: int) -> Array:
        found = flat.of(n, flat.adjusted) if smoothing.adjusted and n < settings.order else flat.counts_of(n)
        return np.where(mask_V, found, 0).astype(np.uint32) if n == 1 else found

    def n_r(n: int) -> Array:
        found = fast.counts_of_counts(values(n))
        return as_lmplz_counts(found, *quirk[n - 1]) if n <= len(quirk) else found

    plan = smoothing.plan(values(1).astype(np.float64), n_r, settings, mask_V)
    trie = fast.interpolated(flat, plan, thresholds)
    if any(thresholds):
        trie = prune.by_count(trie, [flat.counts_of(n) for n in range(1, settings.order + 1)], settings)
    return _model(trie, settings, closed, plan.is_probability), plan.notes

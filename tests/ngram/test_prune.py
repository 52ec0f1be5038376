"""Pruning keeps a language model: smaller, and still summing to one."""

from __future__ import annotations

import numpy as np
import pytest

from nextword.core.errors import ConfigError
from nextword.ngram import estimation, prune
from nextword.ngram.settings import NgramSettings


def sums(model) -> np.ndarray:
    contexts = np.random.default_rng(1).integers(3, 60, (40, 3))
    return np.exp(model.next(model.score(contexts, np.full(40, 3))[1])).sum(axis=1)


@pytest.mark.parametrize("smoothing", [name for name in prune.PRUNABLE if name != "stupid"])
@pytest.mark.parametrize("how", [{"prune": 1}, {"prune": [0, 0, 1]}, {"prune_entropy": 1e-4}])
def test_a_pruned_model_is_smaller_and_sums_to_one(smoothing, how, text):
    whole = estimation.build(text, 60, NgramSettings(order=4, smoothing=smoothing))
    pruned = estimation.build(text, 60, NgramSettings(order=4, smoothing=smoothing, **how))
    assert sum(pruned.trie.sizes) < sum(whole.trie.sizes)
    assert pruned.trie.sizes[0] == 60
    np.testing.assert_allclose(sums(pruned), 1, atol=2e-6)


def test_what_is_kept_was_seen_often_enough(text):
    from nextword.ngram.counts import count

    counts = count(text, 60, 3)
    model = estimation.build(text, 60, NgramSettings(order=3, prune=[0, 1, 2]))
    assert model.trie.sizes[1] == np.sum(counts.levels[1].counts > 1)
    assert model.trie.sizes[2] == np.sum(counts.levels[2].counts > 2)


def test_entropy_pruning_costs_little_likelihood(text):
    whole = estimation.build(text, 60, NgramSettings(order=3))
    pruned = estimation.build(text, 60, NgramSettings(order=3, prune_entropy=1e-5))
    loss = whole.score_packed(text).mean() - pruned.score_packed(text).mean()
    assert sum(pruned.trie.sizes) < 0.95 * sum(whole.trie.sizes)
    assert 0 <= loss < 0.05


@pytest.mark.parametrize("smoothing", ["mle", "add", "laplace", "backoff"])
def test_smoothings_without_a_shorter_context_cannot_be_pruned(smoothing, text):
    with pytest.raises(ConfigError, match=f"does not work with 'model.smoothing' {smoothing}"):
        estimation.build(text, 60, NgramSettings(smoothing=smoothing, prune=1))


def test_scores_cannot_be_pruned_by_entropy(text):
    with pytest.raises(ConfigError, match="'stupid' gives scores"):
        estimation.build(text, 60, NgramSettings(smoothing="stupid", prune_entropy=1e-6))


@pytest.mark.parametrize("wrong", [[1, 1], [0, 2, 1], [0, -1]])
def test_thresholds_must_start_at_nothing_and_not_fall(wrong):
    with pytest.raises(ValueError, match="must start with 0 and must not decrease"):
        NgramSettings(prune=wrong)


def test_compiled_search_for_shorter_ngrams_equals_the_plain_one(text):
    trie = estimation.build(text, 60, NgramSettings(order=5)).trie
    pairs = zip(prune.links(trie, plain=True), prune.links(trie, plain=False), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)

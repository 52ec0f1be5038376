"""Attention maps: rows sum to 1, nothing is seen ahead, and they are the weights of the fast path."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.errors import ConfigError
from nextword.probe import maps, selection
from nextword.probe.attention import habits
from nextword.probe.settings import ProbeSettings


@pytest.mark.parametrize("position", ["rope", "sinusoidal", "alibi", "none"])
@pytest.mark.parametrize("kv_heads", [2, 1])
def test_rows_sum_to_one_and_give_the_layers_own_output(network, ids_of, position, kv_heads):
    made = network("transformer", position=position, kv_heads=kv_heads)
    found = maps.attention(made, ids_of(11))
    weights = found.weights_LNTS
    assert weights.shape == (2, 2, 11, 11)
    assert weights.sum(axis=-1) == pytest.approx(np.ones((2, 2, 11)), abs=1e-12)
    assert (weights[..., ~np.tri(11, dtype=bool)] == 0).all()
    assert found.gap < 1e-12


@given(st.integers(1, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_habits_are_means_of_shares(count, seed):
    weights = np.tril(np.random.default_rng(seed).random((2, 3, count, count)) + 1e-9)
    weights /= weights.sum(axis=-1, keepdims=True)
    found = habits(weights)
    for name in ("itself", "previous", "first"):
        assert ((found[name] >= 0) & (found[name] <= 1)).all()
    assert (found["distance"] <= count - 1).all()
    assert (found["entropy"] <= np.log2(count) + 1e-9).all()


def test_any_layer_and_head_can_be_chosen(subject):
    made = subject("transformer")
    found = selection.look("attention", made, ProbeSettings(layer=2, head=1, tokens=12))
    assert found.parts[1].title == "Layer 2, head 1: what each token looks at"
    assert found.names["T"][0] == "<s>"
    for asked in ({"layer": 3}, {"head": 5}):
        with pytest.raises(ConfigError, match="and the model has 2; choose one from 1 to 2"):
            selection.look("attention", made, ProbeSettings(**asked))


def test_a_head_that_looks_at_the_word_before_is_named():
    weights = np.zeros((1, 2, 4, 4))
    weights[0, 0] = np.eye(4)
    weights[0, 1] = np.eye(4, k=-1)
    weights[0, 1, 0, 0] = 1
    found = habits(weights)
    assert found["previous"].tolist() == [[0.0, 1.0]]
    assert found["itself"].tolist() == [[1.0, 0.25]]
    assert found["distance"][0] == pytest.approx([0.0, 0.75])

"""Token frequencies in a coordinate of the embeddings: a new network without a bias predicts them."""

from __future__ import annotations

import pytest
import torch

from nextword.models.transformer import TransformerNetwork, TransformerSettings

V = 200
COUNTS_V = (10_000 / torch.arange(1, V + 1)).to(torch.int64)  # Zipf's law
COUNTS_V[:2] = 0  # UNKNOWN and START, which a text does not have


def network(marks=0, **sets):
    torch.manual_seed(0)
    settings = TransformerSettings(layers=2, hidden=48, heads=2, context=16, **sets)
    return TransformerNetwork(settings, V, False, marks=marks)


def cross_entropy(new):
    """Return E -log q(v) of tokens drawn from the counts, after inputs drawn from them; and their entropy."""
    p_V = COUNTS_V / COUNTS_V.sum()
    model = new.eval().model()
    with torch.no_grad():
        logq_VV, _ = model.step(torch.arange(V), model.start(V))
    possible_VV = logq_VV.clamp(min=-30.0)  # START is never next
    return float(-(p_V @ possible_VV @ p_V)), float(torch.special.entr(p_V).sum())


@pytest.mark.parametrize("sets", [{}, {"norm": "layernorm"}, {"output_scale": 0.5}, {"position": "none"}])
def test_a_new_network_without_a_bias_predicts_the_frequencies(sets):
    new = network(**sets)
    before, entropy = cross_entropy(new)
    new.prepare(COUNTS_V)
    after, _ = cross_entropy(new)
    assert before > entropy + 0.6
    assert after < entropy + 0.3


@pytest.mark.parametrize(
    "sets", [{"frequencies": False}, {"head_bias": True}, {"tied": False}, {"norm": "none"}]
)
def test_vectors_and_gains_stay_where_there_is_a_bias_or_nothing_to_share(sets):
    new = network(**sets)
    before = {name: value.clone() for name, value in new.named_parameters() if name != "head.bias_V"}
    new.prepare(COUNTS_V)
    assert all(torch.equal(value, dict(new.named_parameters())[name]) for name, value in before.items())


def test_many_tokens_that_are_alike_leave_the_gains_finite():
    many = 162_755  # e^12: log p is -12 for each of them
    settings = TransformerSettings(layers=1, hidden=8, heads=1, context=4)
    new = TransformerNetwork(settings, many, False)
    new.prepare(torch.ones(many, dtype=torch.int64))
    gains = new.stack.norm.gain_D.tolist()
    assert 0 < min(gains) <= max(gains) < 100


def test_symbols_behind_the_vocabulary_get_the_mean_coordinate():
    new = network(marks=3)
    new.prepare(COUNTS_V)
    first_X = new.embedding.weight_VE[:, 0].detach()
    p_V = (COUNTS_V + 0.5) / (COUNTS_V + 0.5).sum()
    assert first_X[V:].tolist() == pytest.approx([float(p_V @ first_X[:V])] * 3, rel=1e-4)

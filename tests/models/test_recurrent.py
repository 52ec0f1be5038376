"""Recurrent language models: rows of any length, resets, connections, settings that cannot be."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.models.network import NeuralLanguageModel

FAMILIES = ["rnn", "lstm", "gru", "gru-torch", "mingru"]
V = 11


def network(name, seed=0, **given):
    torch.manual_seed(seed)
    family = catalog.find("model", name)
    built = family.build(family.Settings(**{"hidden": 6, "scaling": "none", **given}), V, False)
    for weight in built.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return built


def flat(state):
    return [state] if isinstance(state, torch.Tensor) else [leaf for part in state for leaf in flat(part)]


def near(one, other, error=1e-5):
    for ours, theirs in zip(flat(one), flat(other), strict=True):
        torch.testing.assert_close(ours, theirs, atol=error, rtol=0)


@pytest.mark.parametrize("name", FAMILIES)
@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4), seed=st.integers(0, 9))
@settings(max_examples=15, deadline=None)
def test_ragged_rows_are_read_as_if_alone_and_pads_are_never_looked_at(name, lengths, seed):
    model = network(name, seed)
    model.embedding.weight_VE.data[4] = torch.nan  # no real word is 4, all pads are
    lengths_B, T = torch.tensor(lengths), max(lengths)
    ids_BT = torch.randint(5, V, (len(lengths), T))
    ids_BT[torch.arange(T) >= lengths_B[:, None]] = 4
    features_BTD, state = model.read(ids_BT, model.start(len(lengths)), lengths_B)
    assert torch.isfinite(features_BTD).all()
    for row, length in enumerate(lengths):
        alone_1TD, own = model.read(ids_BT[row : row + 1, :length], model.start(1))
        near(features_BTD[row : row + 1, :length], alone_1TD)
        near(model.reorder(state, torch.tensor([row])), own)


@pytest.mark.parametrize("name", FAMILIES)
def test_pads_leave_no_trace_in_the_gradient(name):
    model = network(name)
    lengths_B = torch.tensor([5, 2])
    gradients = []
    for pad in (3, 7):
        ids_BT = torch.tensor([[5, 6, 8, 9, 5], [6, 5, pad, pad, pad]])
        features_BTD, _ = model.read(ids_BT, model.start(2), lengths_B)
        total = features_BTD[0].sum() + features_BTD[1, :2].sum()
        weights = [*model.embedding.parameters(), *model.layers.parameters()]
        gradients.append(torch.autograd.grad(total, weights))
    near(gradients[0], gradients[1], 0)
    assert gradients[0][0][7].eq(0).all()


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("initial", ["zero", "learned"])
def test_a_reset_row_has_read_nothing_and_the_others_go_on(name, initial):
    model = network(name, initial=initial)
    _, state = model.read(torch.randint(3, V, (3, 4)), model.start(3))
    after = model.reset(state, torch.tensor([True, False, True]))
    near(model.reorder(after, torch.tensor([0, 2])), model.start(2), 0)
    near(model.reorder(after, torch.tensor([1])), model.reorder(state, torch.tensor([1])), 0)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_learnt_first_state_learns_through_a_reset(name):
    model = network(name, initial="learned")
    _, state = model.read(torch.randint(3, V, (2, 4)), model.start(2))
    state = model.reset(state, torch.tensor([True, False]))
    features_BTD, _ = model.read(torch.randint(3, V, (2, 3)), state)
    features_BTD[0].sum().backward()
    for weight in model.starts.parameters():
        assert weight.grad.abs().sum().item() > 0


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("connections", ["plain", "residual", "dense", "highway"])
@pytest.mark.parametrize("given", [{}, {"embedding": 4}, {"embedding": 4, "tied": False}])
def test_steps_are_scores_for_all_connections_and_sizes(name, connections, given):
    model = NeuralLanguageModel(network(name, connections=connections, layers=3, **given))
    ids_BT = torch.randint(3, V, (2, 5))
    logp_BT, last = model.score(ids_BT, torch.tensor([5, 5]))
    state = model.start(2)
    for t in range(5):
        near(model.next(state)[torch.arange(2), ids_BT[:, t]], logp_BT[:, t])
        logp_BV, state = model.step(ids_BT[:, t], state)
        near(logp_BV.exp().sum(1), torch.ones(2))
    near(model.next(last), model.next(state))


@pytest.mark.parametrize("name", FAMILIES)
def test_dropout_of_every_kind_trains_and_is_off_afterwards(name):
    drops = {"dropout": 0.3, "dropout_embedding": 0.3, "dropout_words": 0.2}
    if name != "mingru":
        drops["dropout_weight"] = 0.4
    for kind in ("locked", "plain"):
        model = network(name, dropout_kind=kind, **drops)
        ids_BT = torch.randint(3, V, (2, 6))
        first, again = (model.read(ids_BT, model.start(2))[0] for _ in range(2))
        first.sum().backward()
        assert not torch.equal(first, again)
        model.eval()
        first, again = (model.read(ids_BT, model.start(2))[0] for _ in range(2))
        assert torch.equal(first, again)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_bidirectional_language_model_is_refused_in_one_sentence(name):
    with pytest.raises(ConfigError, match="would see the token it has to predict") as caught:
        catalog.find("model", name).Settings(bidirectional=True)
    assert "model.bidirectional" in str(caught.value)


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "identity"])
def test_the_vanilla_network_takes_the_slides_activations(activation):
    model = network("rnn", activation=activation)
    features_BTD, _ = model.read(torch.randint(3, V, (2, 6)), model.start(2))
    features_BTD.sum().backward()
    assert torch.isfinite(features_BTD).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_new_network_is_near_the_uniform_distribution(name):
    family = catalog.find("model", name)
    torch.manual_seed(0)
    model = NeuralLanguageModel(family.build(family.Settings(), 1000, False))
    logp_BT, _ = model.score(torch.randint(3, 1000, (4, 20)), torch.full((4,), 20))
    assert abs(logp_BT.mean().item() + torch.tensor(999.0).log().item()) < 0.6


@pytest.mark.parametrize("name", FAMILIES)
def test_a_repeated_line_is_learnt(name):
    torch.manual_seed(0)
    family = catalog.find("model", name)
    model = family.build(family.Settings(hidden=32), V, False)
    ids_BT = torch.tensor([[1, 5, 6, 5, 7, 5, 8, 2]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(100):
        features_BTD, _ = model.read(ids_BT[:, :-1], model.start(1))
        loss = model.head.loss(features_BTD.flatten(0, 1), ids_BT[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() / 7 < 0.1

"""The window model sees its window, all of it and nothing else."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core import catalog
from nextword.core.contracts import START
from nextword.models.network import NeuralLanguageModel
from nextword.models.window import WINDOW

V = 11


def network(seed=0, **given):
    torch.manual_seed(seed)
    small = {"context": 3, "hidden": 6, "embedding": 4, "scaling": "none"}
    built = WINDOW.build(WINDOW.Settings(**{**small, **given}), V, False)
    for weight in built.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return built


def near(one, other):
    torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


def test_the_catalog_has_it():
    assert catalog.find("model", "window") is WINDOW


@given(lengths=st.lists(st.integers(0, 6), min_size=1, max_size=4), context=st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_ragged_rows_are_read_as_if_alone_and_pads_are_never_looked_at(lengths, context):
    model = network(context=context)
    model.embedding.weight_VE.data[4] = torch.nan
    lengths_B, T = torch.tensor(lengths), max(lengths)
    ids_BT = torch.randint(5, V, (len(lengths), T))
    ids_BT[torch.arange(T) >= lengths_B[:, None]] = 4
    features_BTD, (last_BC,) = model.read(ids_BT, model.start(len(lengths)), lengths_B)
    assert torch.isfinite(features_BTD).all()
    for row, length in enumerate(lengths):
        state = model.start(1)
        for t in range(length):
            feature_11D, state = model.read(ids_BT[row : row + 1, t : t + 1], state)
            near(feature_11D[0, 0], features_BTD[row, t])
        assert torch.equal(state[0][0], last_BC[row])


def test_what_stands_before_the_window_is_not_seen_and_all_of_the_window_is():
    model = network()
    ids_BT = torch.tensor([[5, 6, 7, 8, 9], [10, 6, 7, 8, 9], [5, 6, 10, 8, 9]])
    features_BTD, _ = model.read(ids_BT, model.start(3))
    near(features_BTD[0, 3:], features_BTD[1, 3:])
    assert not torch.allclose(features_BTD[0, 2], features_BTD[1, 2], atol=1e-3)
    assert not torch.allclose(features_BTD[0, 4], features_BTD[2, 4], atol=1e-3)


def test_start_begins_anew():
    model = network()
    stream_1T = torch.tensor([[START, 5, 6, 2, START, 7, 8]])
    features_1TD, state = model.read(stream_1T, model.start(1))
    alone_1TD, own = model.read(stream_1T[:, 4:], model.start(1))
    near(features_1TD[:, 4:], alone_1TD)
    assert torch.equal(state[0], own[0])


@pytest.mark.parametrize("given", [{}, {"tied": False}, {"direct": True}, {"direct": True, "tied": False}])
def test_steps_are_scores(given):
    model = NeuralLanguageModel(network(**given))
    ids_BT = torch.randint(3, V, (2, 6))
    logp_BT, last = model.score(ids_BT, torch.tensor([6, 6]))
    state = model.start(2)
    for t in range(6):
        near(model.next(state)[torch.arange(2), ids_BT[:, t]], logp_BT[:, t])
        logp_BV, state = model.step(ids_BT[:, t], state)
        near(logp_BV.exp().sum(1), torch.ones(2))
    near(model.next(last), model.next(state))


def test_it_is_the_slide_with_bengios_direct_connections():
    model = network(tied=False, direct=True)
    ids_1T = torch.tensor([[5, 6, 7]])
    features_1TD, _ = model.read(ids_1T, model.start(1))
    e = model.embedding.weight_VE[ids_1T[0]].flatten()
    h = torch.tanh(model.words_to_hidden.weight @ e + model.words_to_hidden.bias)
    near(features_1TD[0, -1], torch.cat([h, e]))


def test_the_window_enlarges_the_weights():
    sizes = [network(context=n).words_to_hidden.weight.numel() for n in (1, 2, 4)]
    assert sizes == [sizes[0], 2 * sizes[0], 4 * sizes[0]]

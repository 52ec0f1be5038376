"""Gradients by distance and depth equal what the slides' products, finite differences and autograd give."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nextword.probe import distances, passes, selection
from nextword.probe.gradients import reached
from nextword.probe.settings import ProbeSettings

RECURRENT = ["rnn", "lstm", "gru", "gru-torch", "mingru"]


def _loss(network, ids, target, site, t, change):
    """-log p of a word after a row read by hand, with something added to one layer's state at word t."""
    x_TBE = (network.embedding(ids) * network.scale_words)[:, None]
    at = 0
    if site == 0:
        x_TBE = x_TBE.clone()
        x_TBE[t, 0] += change
    for layer, join, state in zip(network.layers, network.joins, network.start(1), strict=True):
        outputs = []
        first = at + 1
        for place, x_BE in enumerate(x_TBE):
            gates = layer.gates(x_BE, tuple(state))
            state = list(layer(x_BE, tuple(state)))
            for part in range(len(state)):
                if site == first + part and place == t:
                    state[part] = state[part] + change
                    if part == 1:  # h(t) = o ∘ tanh c(t) follows
                        state[0] = gates["output"] * torch.tanh(state[1])
            outputs.append(state[0])
        at += len(state)
        x_TBE = join(x_TBE, torch.stack(outputs))
    feature = (network.fit(x_TBE) * network.scale_features)[-1]
    return passes.losses(network, feature, target[None])


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_gradients_equal_finite_differences(network, ids_of, name):
    made = network(name, hidden=4, embedding=3)
    ids_T = ids_of(7)
    found = distances.by_distance(made, ids_T, distance=6, places=1)
    ids = torch.as_tensor(ids_T)
    step = 1e-5
    with torch.no_grad():
        for site in range(len(found.sites)):
            size = 3 if site == 0 else 4
            for k in (1, 3, 6):
                t = 6 - k
                slopes = []
                for unit in range(size):
                    change = torch.zeros(size, dtype=torch.float64)
                    change[unit] = step
                    up = _loss(made, ids[:6], ids[6], site, t, change)
                    down = _loss(made, ids[:6], ids[6], site, t, -change)
                    slopes.append(float(up - down) / (2 * step))
                assert found.norm_SPK[site, 0, k - 1] == pytest.approx(
                    np.linalg.norm(slopes), rel=1e-5, abs=1e-9
                )


def test_rnn_gradient_is_the_slides_product_of_jacobians(network, ids_of):
    """d loss / d h(t-k) = d loss / d h(t-1) Π W_hᵀ Diag(σ'). [XMU "The gradient may be a trouble maker"]"""
    made = network("rnn", layers=1, hidden=5, embedding=5)
    ids = torch.as_tensor(ids_of(9))
    found = distances.by_distance(made, ids.numpy(), distance=8, places=1)
    done = passes.run(made, ids[None, :8])
    h_TH = torch.cat(done.sites[1].tensors).detach()
    h = h_TH[-1:].clone().requires_grad_()
    passes.losses(made, made.fit(h) * made.scale_features, ids[8:]).backward()
    gradient, W = h.grad[0], made.layers[0].h_to_h.weight.detach()
    for k in range(1, 9):
        assert found.norm_SPK[1, 0, k - 1] == pytest.approx(float(gradient.norm()), rel=1e-9)
        gradient = W.T @ (gradient * (1 - h_TH[-k] ** 2))


@pytest.mark.parametrize("position", ["rope", "learned", "alibi"])
def test_transformer_gradient_equals_autograd_on_the_words(network, ids_of, position):
    made = network("transformer", position=position)
    ids = torch.as_tensor(ids_of(10))
    found = distances.by_distance(made, ids.numpy(), distance=9, places=1)
    table = made.embedding.weight_VE
    rows = torch.stack([table.detach()[i] for i in ids[:9]]).requires_grad_()
    made.embedding.forward = lambda ids_BT: rows[None]
    feature = made.read(ids[None, :9], made.start(1))[0][:, -1]
    passes.losses(made, feature, ids[9:]).backward()
    assert found.norm_SPK[0, 0] == pytest.approx(rows.grad.norm(dim=1).flip(0).numpy(), rel=1e-8)


def test_window_network_has_no_gradient_beyond_its_window(network, ids_of):
    made = network("window", context=4)
    found = distances.by_distance(made, ids_of(30), distance=50, places=5)
    assert found.norm_SPK.shape == (1, 5, 4)
    assert (found.norm_SPK > 0).all()


def test_the_state_before_a_row_is_the_texts_own(network, ids_of):
    """Rows that begin in the middle of a text give what the whole text gives there."""
    made = network("lstm")
    ids = ids_of(30)
    short = distances.by_distance(made, ids, distance=5, places=4)
    long = distances.by_distance(made, ids, distance=int(short.places_P[-1]), places=1)
    last = long.places_P[-1]
    place = int(np.flatnonzero(short.places_P == last)[0])
    assert short.norm_SPK[:, place] == pytest.approx(long.norm_SPK[:, -1, :5], rel=1e-9)


@pytest.mark.parametrize("name", [*RECURRENT, "transformer", "window"])
def test_depth_equals_autograd_on_the_weights(network, ids_of, name):
    made = network(name)
    ids = torch.as_tensor(ids_of(12))
    found = distances.by_depth(made, ids.numpy())
    features, _ = made.read(ids[None, :-1], made.start(1))
    passes.losses(made, features[0], ids[1:]).div(11).backward()
    deep = (
        made.stack.blocks
        if name == "transformer"
        else getattr(made, "layers", [made.__dict__["_modules"].get("words_to_hidden")])
    )
    for depth, layer in enumerate(deep, start=1):
        norm = sum(float(weight.grad.norm()) ** 2 for weight in layer.parameters()) ** 0.5
        assert found.weights_L[depth] == pytest.approx(norm, rel=1e-8)
    assert (found.activations_L > 0).all()


def test_reach_is_where_a_hundredth_is_left():
    assert reached(np.array([1.0, 0.5, 0.02, 0.009, 0.1])) == 4
    assert reached(np.array([1.0, 0.5])) is None


def test_two_runs_are_drawn_in_one_picture(subject):
    found = selection.look("gradients", subject("rnn"), ProbeSettings(distance=8, places=2), subject("lstm"))
    assert "rnn: words" in found.parts[0].svg
    assert "lstm: layer 2, c" in found.parts[0].svg
    assert set(found.arrays) >= {"mean_SK", "against_mean_SK"}

"""Gradients by distance, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nextword.experiments import reach, small, vanishing
from nextword.experiments.finding import Verdict
from nextword.experiments.vanishing import gradient_norms, relative

SETS = {
    "rnn": {"model.layers": 1, "model.hidden": 8},
    "lstm": {"model.layers": 2, "model.hidden": 8},
    "transformer": {"model.layers": 1, "model.hidden": 8, "model.heads": 1, "model.context": 32,
                    "model.init": "gpt2", "model.mask_impossible": True},
    "window": {"model.context": 3, "model.embedding": 8, "model.hidden": 8},
}  # fmt: skip
ROWS = np.random.default_rng(0).integers(3, 12, (3, 7))


def make(family):
    return small.build(small.settings_of(family, 0, {**SETS[family], "model.tied": False}), 12)


@pytest.mark.parametrize("family", SETS)
def test_the_gradient_by_distance_is_that_of_moving_a_words_vector(family):
    """Against finite differences: move the vector of one word of one row, alone."""
    network = make(family).double().eval()
    norms = gradient_norms(network, ROWS)
    assert norms.shape == (3, 6)
    row = ROWS[:1].copy()
    row[0, :-1] = [3, 4, 5, 6, 7, 8]  # every word once, so that its vector is one place
    slopes = gradient_norms(network, row)[0]
    for back in range(6):
        vector = network.embedding.weight_VE[8 - back]  # the word so far back
        found = []
        for place in range(8):
            losses = []
            for push in (-1e-6, 1e-6):
                with torch.no_grad():
                    vector[place] += push
                    losses.append(loss_of(network, row))
                    vector[place] -= push
            found.append((losses[1] - losses[0]) / 2e-6)
        scale = getattr(network, "scale_words", 1.0)  # vectors are multiplied by it
        assert np.linalg.norm(found) == pytest.approx(scale * slopes[back], rel=2e-3, abs=1e-6)


def loss_of(network, row):
    ids = torch.from_numpy(row)
    features, _ = network.read(ids[:, :-1], network.start(1), torch.tensor([6]))
    return -float(network.head.score(features[:, -1], ids[:, -1]))


def test_a_window_hears_nothing_from_outside_and_an_rnn_does():
    assert (gradient_norms(make("window"), ROWS)[:, 3:] == 0).all()
    assert (gradient_norms(make("rnn"), ROWS) > 0).all()


def test_a_text_longer_than_a_transformers_context_is_measured_within_it():
    rows = np.random.default_rng(1).integers(3, 12, (2, 41))
    norms = gradient_norms(make("transformer"), rows)
    assert (norms[:, :32] > 0).all()
    assert (norms[:, 32:] == 0).all()


def test_measuring_a_gradient_leaves_the_network_as_it_was():
    network = make("lstm")
    before = [weight.clone() for weight in network.parameters()]
    gradient_norms(network, ROWS)
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    assert all(weight.grad is None for weight in network.parameters())
    assert network.training


def test_relative_gradients_begin_at_one():
    assert relative(np.array([[2.0, 1.0], [4.0, 0.0]])).tolist() == [1.0, pytest.approx(1 / 6)]


def test_a_gru_whose_update_gate_is_near_0_keeps_the_gradient():
    rows, _ = reach.make_rows(np.random.default_rng(0), 4, 50)
    kept, new = (
        relative(gradient_norms(vanishing.make(name, reach.VOCABULARY), rows))[45]
        for name in (vanishing.KEEPING, "gru")
    )
    assert kept > 100 * new


def test_the_gate_near_0_is_the_update_gate():
    network = vanishing.make(vanishing.KEEPING, 12)
    cell = network.layers[0]
    gates = cell.gates(torch.zeros(1, cell.inputs), (torch.zeros(1, cell.hidden),))
    assert gates["update"].max() < 0.05
    assert gates["reset"].min() > 0.3


def test_a_new_gru_that_keeps_less_than_the_rnn_is_only_partly_a_cure():
    names = ("rnn", "gru", vanishing.KEEPING, "lstm", "transformer")
    new = dict(zip(names, (6e-5, 4e-8, 0.1, 1e-2, 1e-2), strict=True))
    tickets = dict(zip(names, (8e-13, 0.6, 0.6, 0.6, 0.6), strict=True))
    verdicts = {each.claim: each.verdict for each in vanishing._judged(new, tickets, new, quick=False)}
    assert verdicts[vanishing.GRU] is Verdict.PARTLY
    assert verdicts[vanishing.GATE] is Verdict.HELD
    assert verdicts[vanishing.LSTM] is Verdict.HELD
    assert verdicts[vanishing.RNN] is Verdict.HELD

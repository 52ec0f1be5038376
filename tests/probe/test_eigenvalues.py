"""Matrices from state to state: powers, norms and Jacobians are what linear algebra and autograd say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nextword.probe import matrices, selection
from nextword.probe.eigenvalues import departure, fate, norm, powers_of, products
from nextword.probe.settings import ProbeSettings


def test_a_matrix_that_is_not_normal_grows_first():
    """|λ| = 0.9, and yet W² is larger than W. [XMU, a slip: |λ| < 1 alone does not mean that it fades]"""
    W = np.array([[0.9, 5.0], [0.0, 0.9]])
    growth = powers_of(W, [1, 2, 3, 10, 100, 200])
    assert growth == pytest.approx(
        [np.linalg.norm(np.linalg.matrix_power(W, k), 2) for k in (1, 2, 3, 10, 100, 200)]
    )
    assert growth[1] > growth[0] > 1
    assert growth[-1] < 1e-3
    assert departure(W) > 0.5
    assert departure(np.diag([0.9, 0.5])) == 0


def test_the_norm_of_a_large_matrix_is_its_largest_singular_value():
    matrix = np.random.default_rng(1).normal(size=(320, 320))
    assert norm(matrix) == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-3)
    assert norm(matrix * 1e200) == pytest.approx(1e200 * norm(matrix))
    assert norm(np.full((2, 2), np.inf)) == np.inf
    assert norm(np.zeros((2, 2))) == 0


@pytest.mark.parametrize(("name", "count"), [("rnn", 1), ("lstm", 4), ("gru", 3), ("gru-torch", 3)])
def test_matrices_are_the_blocks_of_the_stacked_weights(network, name, count):
    cell = network(name).layers[0]
    found = matrices.weights_of(cell)
    assert len(found) == count
    assert all(each.shape == (8, 8) for each in found.values())
    if name == "lstm":
        h_BH = torch.randn(1, 8, dtype=torch.float64)
        new = torch.tanh(cell.x_to_gates.bias[16:24] + h_BH @ torch.as_tensor(found["h to new"]).T)
        gates = cell.gates(torch.zeros(1, cell.inputs, dtype=torch.float64), (h_BH, h_BH))
        assert torch.allclose(gates["new"], new)


@pytest.mark.parametrize("name", ["rnn", "lstm", "gru", "gru-torch"])
@pytest.mark.parametrize("layer", [0, 1])
def test_jacobians_equal_autograds(network, ids_of, name, layer):
    made = network(name, hidden=4)
    ids_T = ids_of(5)
    found = list(matrices.jacobians(made, ids_T, layer))
    cell = made.layers[layer]
    states, x = [made.start(1)[layer]], made.embedding(torch.as_tensor(ids_T)) * made.scale_words
    if layer:
        below, state = [], made.start(1)[0]
        for x_E in x:
            state = made.layers[0](x_E[None], state)
            below.append(state[0])
        x = torch.cat(below)
    for x_E in x:
        states.append(cell(x_E[None], states[-1]))

    def step(flat_S, t=4):
        return torch.cat(cell(x[t][None], tuple(part[None] for part in flat_S.split(4))), dim=-1)[0]

    flat = torch.cat(states[4], dim=-1)[0].detach()
    assert found[0] == pytest.approx(torch.autograd.functional.jacobian(step, flat).numpy(), abs=1e-10)
    assert len(found) == 5


def test_products_go_back_from_the_end():
    steps = [np.diag([2.0, 1.0]), np.diag([0.1, 1.0])]
    assert products(steps) == pytest.approx([2.0, 1.0])


def test_the_look_names_the_largest_and_draws_the_circle(subject):
    found = selection.look("eigenvalues", subject("rnn"), ProbeSettings(tokens=12))
    largest = np.abs(found.arrays["λ h to h"]).max()
    assert f"largest |λ| = {largest:.3f}" in found.sentence
    assert "the unit circle" in found.parts[0].svg
    assert len(found.arrays["products_K"]) == 12


@pytest.mark.parametrize(
    ("size", "way"), [(1.2, "grow, from"), (0.8, "fall, from"), (1.0, "keep their size")]
)
def test_the_sentence_says_what_the_powers_do(size, way):
    growth = powers_of(np.diag([size, 0.2]), [1, 2, 40])
    assert f"its powers {way}" in fate(size, [1, 2, 40], growth)


def test_powers_that_fall_are_not_said_to_grow_though_an_eigenvalue_is_above_1():
    W = np.diag([1.0005, 0.5, 0.5])
    W[1, 2] = 6.0
    growth = powers_of(W, [1, 2, 40])
    said = fate(1.0005, [1, 2, 40], growth)
    assert growth[-1] < growth[0]
    assert "its powers fall" in said
    assert said.endswith("in the limit they grow")


def test_where_picture_and_limit_differ_the_sentence_says_both():
    said = fate(1.02, [1, 2, 100], np.array([1.9, 1.5, 0.7]))
    assert said == (
        "up to k = 100 its powers fall, from ‖W‖ = 1.9 to 0.7, while |λ| says that in the limit they grow"
    )
    assert "with a peak of 8 at k = 2" in fate(0.9, [1, 2, 100], np.array([5.0, 8.0, 0.1]))

"""The cells compute the slides' equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nextword.blocks.cells import GRUCell, LSTMCell, MinGRUCell, RNNCell
from nextword.blocks.recurrent import LSTM
from nextword.core import catalog

E, H = 3, 2


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def numbers(cell, name):
    return dict(cell.named_parameters())[name].detach().numpy()


def inputs():
    return torch.randn(1, E).double(), torch.randn(1, H).double()


@pytest.mark.parametrize(
    ("name", "sigma"),
    [
        ("tanh", np.tanh),
        ("relu", lambda a: np.maximum(a, 0)),
        ("sigmoid", sigmoid),
        ("identity", lambda a: a),
    ],
)
def test_rnn_is_the_slide_for_every_activation(name, sigma):
    cell = RNNCell(E, H, name).double()
    x_BE, h_BH = inputs()
    W_h, W_e, b_1 = (numbers(cell, each) for each in ("h_to_h.weight", "x_to_h.weight", "x_to_h.bias"))
    expected = sigma(W_h @ h_BH[0].numpy() + W_e @ x_BE[0].numpy() + b_1)
    np.testing.assert_allclose(cell(x_BE, (h_BH,))[0][0].detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("name", catalog.names("cell_activation"))
def test_slope_told_from_the_value_is_the_derivative(name):
    a = torch.tensor([-1.5, -0.2, 0.3, 2.0], dtype=torch.float64, requires_grad=True)
    h = catalog.find("cell_activation", name).value(a)
    (slope,) = torch.autograd.grad(h.sum(), a)
    torch.testing.assert_close(catalog.find("cell_activation", name).slope(h.detach()), slope)


def test_lstm_is_the_slide():
    cell = LSTMCell(E, H).double()
    x_BE, h_BH = inputs()
    c_BH = torch.randn(1, H).double()
    U, W, b = (numbers(cell, each) for each in ("x_to_gates.weight", "h_to_gates.weight", "x_to_gates.bias"))
    i, f, new, o = np.split(W @ h_BH[0].numpy() + U @ x_BE[0].numpy() + b, 4)
    c = sigmoid(f) * c_BH[0].numpy() + sigmoid(i) * np.tanh(new)
    h_new, c_new = cell(x_BE, (h_BH, c_BH))
    np.testing.assert_allclose(c_new[0].detach().numpy(), c, atol=1e-12)
    np.testing.assert_allclose(h_new[0].detach().numpy(), sigmoid(o) * np.tanh(c), atol=1e-12)


def test_gru_resets_before_the_product_as_on_the_slide():
    cell = GRUCell(E, H).double()
    x_BE, h_BH = inputs()
    x, h = x_BE[0].numpy(), h_BH[0].numpy()
    from_x = np.split(numbers(cell, "x_to_all.weight") @ x + numbers(cell, "x_to_all.bias"), 3)
    from_h = np.split(numbers(cell, "h_to_gates.weight") @ h, 2)
    r, u = sigmoid(from_h[0] + from_x[0]), sigmoid(from_h[1] + from_x[1])
    new = np.tanh(numbers(cell, "h_to_new.weight") @ (r * h) + from_x[2])
    np.testing.assert_allclose(cell(x_BE, (h_BH,))[0][0].detach().numpy(), (1 - u) * h + u * new, atol=1e-12)


def test_mingru_gates_look_at_the_word_alone():
    cell = MinGRUCell(E, H).double()
    x_BE, h_BH = inputs()
    z, new = np.split(numbers(cell, "x_to_all.weight") @ x_BE[0].numpy() + numbers(cell, "x_to_all.bias"), 2)
    expected = (1 - sigmoid(z)) * h_BH[0].numpy() + sigmoid(z) * new
    np.testing.assert_allclose(cell(x_BE, (h_BH,))[0][0].detach().numpy(), expected, atol=1e-12)


def test_forget_1_and_input_0_preserve_a_cell_indefinitely():
    """[IITD-2 "How Does LSTM Solve Vanishing Gradients?"]"""
    layer = LSTM(E, H)
    with torch.no_grad():
        layer.x_to_gates.bias[:H] = -1e4  # input
        layer.x_to_gates.bias[H : 2 * H] = 1e4  # forget
    c_BH = torch.tensor([[0.7, -1.3]])
    state = (torch.zeros(1, H), c_BH)
    x_TBE = torch.randn(1000, 1, E)
    gates = layer.gates(x_TBE[0], state)
    assert gates["forget"].eq(1).all()
    assert gates["input"].eq(0).all()
    _, (_, c_after) = layer.read(x_TBE, state)
    assert torch.equal(c_after.detach(), c_BH)


def test_a_new_lstm_remembers_since_its_forget_gate_is_open():
    assert LSTMCell(E, H).x_to_gates.bias[H : 2 * H].eq(1).all()


def test_a_new_way_from_state_to_state_keeps_lengths():
    for gate_HH in LSTMCell(E, H).h_to_gates.weight.chunk(4):
        torch.testing.assert_close(gate_HH @ gate_HH.T, torch.eye(H), atol=1e-5, rtol=0)


def test_packed_weights_follow_the_weights():
    layer = LSTM(E, H).eval()
    x_TBE, state = torch.randn(1, 2, E), (torch.zeros(2, H), torch.zeros(2, H))
    with torch.no_grad():
        layer.read(x_TBE, state)
        layer.h_to_gates.weight.mul_(3)
        layer.x_to_gates.bias.add_(1)
        ours, plain = layer.read(x_TBE, state)[0][0], layer(x_TBE[0], state)[0]
    torch.testing.assert_close(ours, plain, atol=1e-6, rtol=0)

"""Activations have the values and the derivatives of their equations."""

from __future__ import annotations

import pytest
import torch

from nextword.core.catalog import find, names


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("relu", -1, 0.0),
        ("relu2", 3, 9.0),
        ("relu2", -3, 0.0),
        ("gelu", 1, 0.8413447),
        ("gelu-tanh", 1, 0.8411920),
        ("swish", 1, 0.7310586),
        ("elu", -1, -0.6321206),
        ("selu", -1, -1.1113307),
        ("selu", 1, 1.0507010),
        ("sigmoid", 0, 0.5),
        ("softplus", 0, 0.6931472),
        ("tanh", 1, 0.7615942),
        ("identity", 3, 3.0),
    ],
)
def test_activation_has_the_value_of_its_equation(name, at, value):
    assert float(find("activation", name)(torch.tensor(float(at)))) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("name", names("activation"))
def test_activation_has_the_derivative_of_its_equation(name):
    u = torch.linspace(-2, 2, 9, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(find("activation", name), [u + 0.05])

"""Connections between layers compute their formulas."""

from __future__ import annotations

import pytest
import torch

from nextword.blocks.joins import Dense, Highway, NarrowHighway, Plain, Residual
from nextword.core import catalog


@pytest.fixture
def pair():
    torch.manual_seed(0)
    return torch.randn(2, 3, 4), torch.randn(2, 3, 4)


def test_plain_gives_what_came_out(pair):
    assert torch.equal(Plain(4, 4)(*pair), pair[1])


def test_residual_adds_the_identity(pair):
    assert torch.equal(Residual(4, 4)(*pair), pair[0] + pair[1])


def test_dense_hands_on_everything(pair):
    assert torch.equal(Dense(4, 4)(*pair), torch.cat(pair, dim=-1))


def test_highway_mixes_by_a_gate_that_begins_nearly_closed(pair):
    join = NarrowHighway(4, 4)
    x, y = pair
    gate = torch.sigmoid(x @ join.gate.weight.T + join.gate.bias)
    torch.testing.assert_close(join(x, y), gate * y + (1 - gate) * x)
    assert gate.mean().item() < 0.3


def test_highway_takes_an_output_of_another_type_than_the_stream():
    join = Highway(4, 4)
    x, y = torch.randn(2, 3, 4), torch.randn(2, 3, 4).bfloat16()
    assert join(x, y).dtype == torch.float32
    torch.testing.assert_close(join(x, y), join(x, y.float()))


@pytest.mark.parametrize("name", ["plain", "residual", "dense", "highway"])
def test_widths_are_told_and_sizes_may_change(name):
    join = catalog.find("connection", name)(5, 4)
    assert join(torch.randn(2, 3, 5), torch.randn(2, 3, 4)).shape == (2, 3, join.width)

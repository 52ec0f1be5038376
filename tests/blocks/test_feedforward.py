"""Feed-forward parts, plain and gated."""

from __future__ import annotations

import pytest
import torch

from nextword.blocks.feedforward import FeedForward, GatedFeedForward
from nextword.blocks.shape import Shape
from nextword.core.catalog import find


@pytest.mark.parametrize(
    ("name", "a", "value"),
    [
        ("glu", 0.0, 1.0),
        ("geglu", 1.0, 1.6826895),
        ("reglu", -1.0, 0.0),
        ("swiglu", 1.0, 1.4621172),
        ("liglu", 3.0, 6.0),
    ],
)
def test_gated_part_activates_its_first_half(name, a, value):
    part: GatedFeedForward = find("ffn", name)(Shape(1, 1, 1, 1, 1, 1, 1))
    with torch.no_grad():
        part.inner.weight.zero_()
        part.inner.bias.copy_(torch.tensor([a, 2.0]))
        part.out.weight.fill_(1.0)
        part.out.bias.zero_()
        assert float(part(torch.ones(1, 1, 1))) == pytest.approx(value, abs=1e-6)


def test_plain_and_gated_parts_have_about_as_many_weights():
    plain, gated = (
        FeedForward(Shape(16, 2, 4, 2, 4, 32, 20)),
        GatedFeedForward(Shape(16, 2, 4, 2, 4, int(32 * 2 / 3), 20)),
    )
    count = [sum(p.numel() for p in part.parameters()) for part in (plain, gated)]
    assert count[0] == pytest.approx(count[1], rel=0.05)


def test_a_bilinear_part_grows_with_the_square_of_its_input():
    part: GatedFeedForward = find("ffn", "liglu")(Shape(8, 1, 1, 1, 8, 12, 1, bias=False))
    x_BTD = torch.randn(1, 3, 8)
    torch.testing.assert_close(part(3 * x_BTD), 9 * part(x_BTD))


@pytest.mark.parametrize("name", ["glu", "geglu", "geglu-tanh", "reglu", "swiglu"])
def test_with_a_second_half_of_ones_a_gated_part_is_its_activation(name):
    part: GatedFeedForward = find("ffn", name)(Shape(8, 1, 1, 1, 8, 12, 1))
    x_BTD = torch.randn(1, 3, 8)
    with torch.no_grad():
        part.inner.weight[12:].zero_()
        part.inner.bias[12:].fill_(1.0)
        a_BTF = x_BTD @ part.inner.weight[:12].T + part.inner.bias[:12]
    torch.testing.assert_close(part(x_BTD), part.out(find("activation", part.phi)(a_BTF)))

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

"""Funnels: how long the result is, and that neither padding nor what is equal everywhere changes anything."""

from __future__ import annotations

import pytest
import torch

from nextword.blocks.cache import Reading
from nextword.blocks.funnel import Funnel, FunnelSettings, pooled
from nextword.blocks.positions import NoPosition
from nextword.blocks.relative import Buckets
from nextword.blocks.shape import Shape
from nextword.core.errors import ConfigError

D = 8


def made(pool, position=NoPosition, **more):
    options = (FunnelSettings(groups=3, pool=pool),)
    shape = Shape(D, 3, 2, 2, 4, 16, 16, causal=False, options=options, **more)
    return Funnel(shape, position(shape)).eval()


def encoded(stack, x_BTD, lengths):
    T = x_BTD.shape[1]
    return stack(x_BTD, stack.start(len(x_BTD)), Reading([0] * len(x_BTD), lengths, T, T, x_BTD.device))[0]


@pytest.mark.parametrize("pool", ["query", "output"])
@pytest.mark.parametrize("position", [NoPosition, Buckets])
def test_every_group_halves_the_length_and_padding_changes_nothing(pool, position):
    stack, x_BTD = made(pool, position), torch.randn(2, 11, D)
    both = encoded(stack, x_BTD, [11, 6])
    assert both.shape == (2, 3, D)  # 11, 6, 3
    assert stack.lengths(torch.tensor([11, 6])).tolist() == [3, 2]
    assert Funnel.length_after(stack.shape, 11) == 3
    torch.testing.assert_close(both[1, :2], encoded(stack, x_BTD[1:, :6], [6])[0])


def test_the_mean_of_what_is_equal_is_the_same_also_at_the_end():
    x_BTD = torch.randn(1, 1, D).expand(2, 7, D)
    found = pooled(x_BTD, Reading([0, 0], [7, 5], 7, 7, x_BTD.device), 2)
    torch.testing.assert_close(found[0], x_BTD[0, :4])
    torch.testing.assert_close(found[1, :3], x_BTD[1, :3])


def test_a_causal_stack_is_refused_with_what_to_choose():
    shape = Shape(D, 3, 2, 2, 4, 16, 16, options=(FunnelSettings(groups=3),))
    with pytest.raises(ConfigError, match="hourglass"):
        Funnel(shape, NoPosition(shape))

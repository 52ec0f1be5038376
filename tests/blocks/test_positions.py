"""Positions: relative where they say so, and the tables and slopes that were published."""

from __future__ import annotations

import math

import pytest
import torch

from nextword.blocks.positions import ALiBi, Rotary, Sinusoidal
from nextword.blocks.shape import Shape
from nextword.core.catalog import find, names

SHAPE = Shape(width=16, layers=2, heads=4, kv_heads=2, head_size=4, inner=32, context=20)


def test_rotary_scores_depend_on_the_distance_only():
    turn = Rotary(SHAPE).turn
    q, k = torch.randn(1, 1, 1, 4), torch.randn(1, 1, 1, 4)
    scores = [
        float((turn(q, slice(m, m + 1)) * turn(k, slice(n, n + 1))).sum())
        for m, n in ((3, 1), (12, 10), (19, 17))
    ]
    assert max(scores) - min(scores) < 1e-5
    torch.testing.assert_close(turn(q, slice(9, 10)).norm(), q.norm())


def test_positions_are_the_same_by_slice_and_by_number():
    for name in names("position"):
        position, places = find("position", name)(SHAPE), torch.tensor([[3, 4, 5]])
        x_BTD, x_BTNK = torch.randn(1, 3, 16), torch.randn(1, 3, 2, 4)
        torch.testing.assert_close(position.embed(x_BTD, slice(3, 6)), position.embed(x_BTD, places))
        torch.testing.assert_close(position.turn(x_BTNK, slice(3, 6)), position.turn(x_BTNK, places))
        pair = [position.bias(slice(3, 6), 6), position.bias(places, 6)]
        if pair[0] is not None:
            torch.testing.assert_close(pair[0].expand(1, -1, -1, -1), pair[1])


def test_sinusoidal_is_the_table_of_the_paper():
    waves = Sinusoidal(SHAPE).table_WD
    assert float(waves[7, 4]) == pytest.approx(math.sin(7 / 10000 ** (4 / 16)), abs=1e-6)
    assert float(waves[7, 5]) == pytest.approx(math.cos(7 / 10000 ** (4 / 16)), abs=1e-6)


def test_alibi_slopes_are_the_published_ones():
    eight = ALiBi(Shape(16, 1, 8, 8, 2, 4, 4)).slopes_N11.flatten()
    torch.testing.assert_close(eight, 2.0 ** -torch.arange(1.0, 9.0))
    twelve = ALiBi(Shape(24, 1, 12, 12, 2, 4, 4)).slopes_N11.flatten()
    torch.testing.assert_close(twelve[8:], 2.0 ** -torch.tensor([0.5, 1.5, 2.5, 3.5]))

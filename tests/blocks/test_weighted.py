"""Branches: weights that stay positive and sum to 1, and what one branch alone does."""

from __future__ import annotations

import pytest
import torch

from nextword.blocks.cache import Reading
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.blocks.weighted import Branches, Weighted

D, T = 8, 5
SHAPE = Shape(D, 1, 2, 2, 4, 16, 10, bias=False)


def test_the_weights_of_the_branches_are_made_positive_and_sum_to_one():
    part = Branches(SHAPE)
    with torch.no_grad():
        part.kappa_N.copy_(torch.tensor([3.0, -1.0]))
    part.settle()
    assert (part.kappa_N >= 0).all()
    assert float(part.kappa_N.detach().sum()) == pytest.approx(1.0, abs=2e-3)


def test_one_branch_alone_is_its_head_and_the_feed_forward_part():
    part, heads_BTX = Branches(SHAPE), torch.randn(1, T, D)
    with torch.no_grad():
        part.kappa_N.copy_(torch.tensor([0.0, 1.0]))
        part.alpha_N.copy_(torch.tensor([0.0, 1.0]))
    expected = part.ffn(heads_BTX[..., 4:] @ part.merge.weight[:, 4:].T)
    torch.testing.assert_close(part(heads_BTX), expected)


def test_a_single_branch_is_the_feed_forward_part_of_attention():
    shape = Shape(D, 1, 1, 1, 8, 16, 10, bias=False)
    layer = Weighted(shape, NoPosition(shape)).eval()
    branch = layer.mixer.out
    torch.nn.init.ones_(branch.kappa_N)
    torch.nn.init.ones_(branch.alpha_N)
    x_BTD, reading = torch.randn(1, T, D), Reading([0], [T], T, 10, torch.device("cpu"))
    weights, mixed = layer.mixer.explain(layer.around_mixer.enter(x_BTD), reading)
    stream, _ = layer(x_BTD, layer.start(1), reading)
    torch.testing.assert_close(stream, x_BTD + mixed)
    assert weights.shape == (1, 1, T, T)


def test_an_update_of_the_trainer_makes_the_weights_sum_to_one_again():
    from nextword.training.update import settle

    part = Branches(SHAPE)
    torch.nn.init.constant_(part.alpha_N, 5.0)
    settle(torch.nn.Sequential(part))
    assert float(part.alpha_N.detach().sum()) == pytest.approx(1.0, abs=2e-3)

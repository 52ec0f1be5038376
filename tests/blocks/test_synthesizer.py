"""Synthesizers: scores that do not depend on the text, or on the token alone, and what is mixed with them."""

from __future__ import annotations

import pytest
import torch

from nextword.blocks import synthesizer
from nextword.blocks.attention import Attention
from nextword.blocks.cache import Reading
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape

D, T = 8, 6
SHAPE = Shape(D, 1, 2, 2, 4, 16, 10, bias=False)


def scores(part, x_BTD):
    reading = Reading([0], [T], T, 10, x_BTD.device)
    q_BNTK = part.split(part.from_x(x_BTD)).transpose(1, 2)[:, : part.counts[0]]
    found = part.scores(q_BNTK, reading)
    return found if found.ndim == 4 else found[None]


@pytest.mark.parametrize("name", ["Random", "Factorized"])
def test_scores_of_a_random_one_are_the_same_for_all_texts(name):
    part = getattr(synthesizer, name)(SHAPE, NoPosition(SHAPE))
    assert torch.equal(scores(part, torch.randn(1, T, D)), scores(part, torch.randn(1, T, D)))


def test_scores_of_a_dense_one_come_from_the_token_alone():
    part, x_BTD = synthesizer.Dense(SHAPE, NoPosition(SHAPE)), torch.randn(1, T, D)
    before = scores(part, x_BTD)
    x_BTD[0, 2] += 1
    same = (scores(part, x_BTD) == before).all(dim=-1).all(dim=1)[0]
    assert same.tolist() == [t != 2 for t in range(T)]


def test_a_factorized_one_has_a_low_rank():
    part = synthesizer.Factorized(Shape(D, 1, 2, 2, 4, 16, 40), NoPosition(SHAPE))
    reading = Reading([0], [40], 40, 40, torch.device("cpu"))
    found = part.scores(torch.zeros(1, 2, 40, 4), reading)
    assert int(torch.linalg.matrix_rank(found.detach()[0])) <= 16


@pytest.mark.parametrize("name", ["DensePlusAlpha", "RandomPlusAlpha"])
def test_without_its_share_the_mixture_is_plain_attention(name):
    part, plain = getattr(synthesizer, name)(SHAPE, NoPosition(SHAPE)), Attention(SHAPE, NoPosition(SHAPE))
    plain.load_state_dict({key: part.state_dict()[key] for key in plain.state_dict()})
    torch.nn.init.constant_(part.alpha, -torch.inf)
    x_BTD, reading = torch.randn(2, T, D), Reading([0, 0], [T, T], T, 10, torch.device("cpu"))
    expected, _ = plain(x_BTD, plain.start(2), reading)
    torch.testing.assert_close(part(x_BTD, part.start(2), reading)[0], expected)


def test_a_half_is_mixed_at_first():
    part = synthesizer.RandomPlusAlpha(SHAPE, NoPosition(SHAPE))
    a, b = torch.randn(1, 2, T, T), torch.randn(1, 2, T, T)
    torch.testing.assert_close(part.mix(a, b), (a + b) / 2)

"""Dropout keeps the mean, and each kind drops what it says."""

from __future__ import annotations

import math

import pytest
import torch

from nextword.blocks.dropout import Dropout, LockedDropout, WordDropout, drop_weight, mask
from nextword.blocks.recurrent import LSTM


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.65, 0.9])
def test_masks_drop_their_share_and_have_mean_one(share):
    n = 400_000
    drawn = mask((n,), share, torch.zeros(1))
    error = 5 * math.sqrt(share * (1 - share) / n)  # five standard errors
    assert abs((drawn == 0).double().mean().item() - share) < error
    assert abs(drawn.double().mean().item() - 1) < error / (1 - share)
    kept = drawn[drawn > 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - share)), rtol=1e-4, atol=0)


def test_all_bits_of_a_drawn_number_are_random():
    """Each of the four numbers that come from one integer has the same chance, and none knows the others."""
    kept_N4 = (mask((4 * 50_000,), 0.5, torch.zeros(1)) > 0).double().view(-1, 4)
    assert (kept_N4.mean(0) - 0.5).abs().max().item() < 5 * 0.5 / math.sqrt(50_000)
    assert (torch.corrcoef(kept_N4.T) - torch.eye(4)).abs().max().item() < 5 / math.sqrt(50_000)


def test_the_same_seed_draws_the_same_mask():
    torch.manual_seed(3)
    first = mask((7, 3), 0.4, torch.zeros(1))
    torch.manual_seed(3)
    assert torch.equal(first, mask((7, 3), 0.4, torch.zeros(1)))


def test_locked_dropout_is_the_same_at_all_positions_and_differs_between_rows():
    y_TBH = LockedDropout(0.5)(torch.ones(6, 4, 50))
    assert torch.equal(y_TBH, y_TBH[:1].expand_as(y_TBH))
    assert not torch.equal(y_TBH[0, 0], y_TBH[0, 1])


def test_plain_dropout_differs_between_positions():
    y_TBH = Dropout(0.5)(torch.ones(2, 1, 100))
    assert not torch.equal(y_TBH[0], y_TBH[1])


def test_nothing_is_dropped_outside_training():
    x = torch.randn(3, 2, 5)
    ids = torch.zeros(3, 2, dtype=torch.int64)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(WordDropout(0.5).eval()(x, ids, 9), x)


def test_a_dropped_word_is_dropped_wherever_it_stands():
    ids_TB = torch.arange(20).repeat(3, 2)
    y_TBE = WordDropout(0.5)(torch.ones(3, 40, 4), ids_TB, 20)
    assert torch.equal(y_TBE[:, :20], y_TBE[:, 20:])
    assert torch.equal(y_TBE[0], y_TBE[2])
    assert set(y_TBE.unique().tolist()) == {0.0, 2.0}


def test_weight_drop_drops_ways_from_state_to_state_in_training_alone():
    layer = LSTM(3, 50)
    layer.weight_drop = 0.5
    dropped = layer.dropped(layer.h_to_gates)
    assert 0.4 < dropped.eq(0).double().mean().item() < 0.6
    assert layer.eval().dropped(layer.h_to_gates) is layer.h_to_gates.weight


def test_gradients_go_through_what_was_kept():
    weight = torch.ones(40, 40, requires_grad=True)
    dropped = drop_weight(weight, 0.25)
    dropped.sum().backward()
    assert torch.equal(weight.grad, dropped.detach())

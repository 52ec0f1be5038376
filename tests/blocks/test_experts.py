"""Experts: who computes a token, with what weight, how many have room, and the loss that balances them."""

from __future__ import annotations

import pytest
import torch

from nextword.blocks import losses
from nextword.blocks.cache import Reading
from nextword.blocks.experts import Experts, ExpertSettings, Switch, balance
from nextword.blocks.shape import Shape

D, F = 8, 12


def made(kind=Switch, **options):
    options = {"count": 4, "inner": F} | options
    return kind(Shape(D, 1, 2, 2, 4, F, 10, options=(ExpertSettings(**options),)))


@pytest.mark.parametrize("kind", [Switch, Experts])
def test_a_single_expert_is_a_feed_forward_part(kind):
    part, x_BTD = made(kind, count=1).eval(), torch.randn(2, 5, D)
    expected = torch.relu(x_BTD @ part.inner_EDF[0]) @ part.out_EFD[0]
    torch.testing.assert_close(part(x_BTD), expected)


@pytest.mark.parametrize("kind", [Switch, Experts])
def test_enough_room_gives_what_no_limit_gives(kind):
    part, x_BTD = made(kind, capacity=100.0), torch.randn(3, 7, D)
    experts_NX, gates_NX = part.eval().route(x_BTD.flatten(0, 1), None)
    limited = part.with_capacity(x_BTD.flatten(0, 1), experts_NX, gates_NX, None)
    torch.testing.assert_close(limited, part.for_all(x_BTD.flatten(0, 1), experts_NX, gates_NX))


def test_two_weights_sum_to_one_and_a_single_one_is_what_the_router_gives():
    x_ND = torch.randn(20, D)
    two, one = made(Experts).eval(), made(Switch).eval()
    torch.testing.assert_close(two.route(x_ND, None)[1].sum(dim=-1), torch.ones(20))
    expected = one.router(x_ND).softmax(dim=-1).amax(dim=-1)
    torch.testing.assert_close(one.route(x_ND, None)[1][:, 0], expected)


def test_tokens_past_the_room_get_nothing_and_first_choices_come_first():
    part = made(Switch, capacity=1.0, group=1024)
    experts_NX, gates_NX = torch.zeros(32, 1, dtype=torch.int64), torch.ones(32, 1)
    y_ND = part.with_capacity(torch.randn(32, D), experts_NX, gates_NX, None)
    assert (y_ND[:8] != 0).any(dim=-1).all()  # 32 tokens, 4 experts: each has room for 8
    assert not y_ND[8:].any()
    pair = made(Experts, capacity=0.5)
    chosen = torch.tensor([[1, 0]] * 4 + [[0, 1]] * 4)
    slots_NX = pair.slots(chosen, torch.ones(8, 2, dtype=torch.bool), None, 8, 4)
    assert slots_NX[:, 0].tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    assert (slots_NX[:, 1] == 16).all()  # both are full with first choices


def test_what_is_not_a_token_takes_no_room():
    part = made(Switch, capacity=1.0)
    real_N = torch.tensor([False] * 8 + [True] * 8)
    experts_NX = torch.zeros(16, 1, dtype=torch.int64)
    slots_NX = part.slots(experts_NX, torch.ones(16, 1, dtype=torch.bool), real_N, 16, 8)
    assert slots_NX[8:, 0].tolist() == list(range(8))


def test_padding_does_not_change_what_tokens_get():
    part, x_BTD = made(Experts).eval(), torch.randn(2, 6, D)
    reading = Reading([0, 0], [6, 3], 6, 10, torch.device("cpu"))
    torch.testing.assert_close(part(x_BTD, reading)[1, :3], part(x_BTD[1:, :3])[0])


def test_the_order_of_the_experts_does_not_matter():
    part, other, order = made(Experts).eval(), made(Experts).eval(), torch.tensor([2, 0, 3, 1])
    with torch.no_grad():
        other.router.weight.copy_(part.router.weight[order])
        other.inner_EDF.copy_(part.inner_EDF[order])
        other.out_EFD.copy_(part.out_EFD[order])
    x_BTD = torch.randn(2, 5, D)
    torch.testing.assert_close(other(x_BTD), part(x_BTD))


def test_balance_is_one_if_even_and_the_number_of_experts_if_one_does_everything():
    even_NE = torch.eye(4).repeat(5, 1)
    assert float(balance(even_NE, None)) == pytest.approx(1.0)
    assert float(balance(torch.eye(4)[:1].repeat(9, 1), None)) == pytest.approx(4.0)


def test_the_router_of_a_switch_learns_and_its_loss_has_a_name():
    part = made(Switch, balance=0.01)
    with losses.collecting() as found:
        part(torch.randn(2, 5, D)).square().sum().backward()
    assert list(found) == ["balance"]
    assert part.router.weight.grad.abs().sum() > 0
    with losses.collecting() as nothing:
        made(Switch, balance=0.0)(torch.randn(2, 5, D))
    assert nothing == {}

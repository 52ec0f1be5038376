"""States as nested tuples of tensors: one walk for all of them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nextword.blocks.states import detach, filled, join_rows, leaves, map_state, take_rows


class Pair(NamedTuple):
    keys: Tensor
    inner: tuple[Tensor, ...]


def test_named_tuples_keep_their_type():
    state = (Pair(torch.ones(2, 3), (torch.zeros(2),)),)
    found = map_state(lambda part: part + 1, state)
    assert isinstance(found[0], Pair)
    assert found[0].inner[0].tolist() == [1.0, 1.0]


def test_leaves_are_filled_in_again_in_their_order():
    state = (Pair(torch.ones(2, 3), (torch.zeros(2),)), ())
    assert [leaf.shape for leaf in leaves(state)] == [(2, 3), (2,)]
    back = filled(state, [leaf + 1 for leaf in leaves(state)])
    assert isinstance(back[0], Pair)
    assert back[0].keys.eq(2).all()
    assert back[1] == ()
    assert leaves(None) == []


def test_a_detached_state_has_the_same_numbers_and_no_graph():
    weight = torch.ones(2, requires_grad=True)
    found = detach((weight * 2, (weight * 3,)))
    assert [leaf.requires_grad for leaf in leaves(found)] == [False, False]
    assert found[1][0].eq(3).all()


def test_a_single_state_is_joined_without_a_copy():
    state = (torch.ones(2, 3),)
    assert join_rows([state]) is state


def test_rows_of_states_are_taken_and_joined_with_room():
    short, long = torch.ones(2, 1, 3, 2), torch.full((1, 1, 5, 2), 2.0)
    joined = join_rows([(short, (short,)), (long, (long,))])
    assert joined[0].shape == (3, 1, 5, 2)
    assert not joined[0][:2, :, 3:].any()
    rows = take_rows(joined, torch.tensor([2, 0]))
    assert rows[1][0][0].eq(2).all()
    assert rows[1][0][1, :, :3].eq(1).all()

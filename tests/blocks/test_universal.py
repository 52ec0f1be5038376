"""Repeated layers: shares of steps that sum to 1, and what is left when there is one step."""

from __future__ import annotations

import pytest
import torch

from nextword.blocks.cache import Reading
from nextword.blocks.positions import NoPosition
from nextword.blocks.shape import Shape
from nextword.blocks.stack import SharedStack
from nextword.blocks.universal import Halting, RecurrenceSettings, Universal

D, T = 8, 5


def made(**options):
    shape = Shape(D, 1, 2, 2, 4, 16, 10, options=(RecurrenceSettings(**options),))
    return Universal(shape, NoPosition(shape)).eval()


def run(stack, x_BTD):
    reading = Reading([0] * len(x_BTD), [T] * len(x_BTD), T, 10, x_BTD.device)
    return [stream for stream, _ in stack.run(x_BTD, stack.start(len(x_BTD)), reading)]


def test_shares_are_positive_and_sum_to_one():
    settings = RecurrenceSettings(steps=6, halting="accumulate")
    stream = torch.randn(2, T, D)
    halting = Halting.begun(stream, settings)
    for step in range(6):
        halting.step(torch.rand(2, T) * 0.5, stream, stream, step == 5)
    shares = torch.stack(halting.shares)
    assert (shares >= 0).all()
    torch.testing.assert_close(shares.sum(dim=0), torch.ones(2, T))


@pytest.mark.parametrize(("bias", "step"), [(100.0, 1), (-100.0, 4)])
def test_a_token_that_stops_at_once_has_one_step_and_one_that_never_stops_has_all(bias, step):
    stack, plain = made(steps=4, halting="accumulate"), made(steps=4)
    plain.load_state_dict({key: value for key, value in stack.state_dict().items() if "halt" not in key})
    torch.nn.init.zeros_(stack.halt.weight)
    torch.nn.init.constant_(stack.halt.bias, bias)
    x_BTD = torch.randn(2, T, D)
    torch.testing.assert_close(run(stack, x_BTD)[-1], run(plain, x_BTD)[step - 1])


def test_without_vectors_of_steps_it_is_a_shared_layer():
    stack = made(steps=3, vectors="none")
    shape = Shape(D, 3, 2, 2, 4, 16, 10)
    shared = SharedStack(shape, NoPosition(shape)).eval()
    shared.load_state_dict(stack.state_dict())
    x_BTD = torch.randn(2, T, D)
    torch.testing.assert_close(run(stack, x_BTD)[-1], run(shared, x_BTD)[-1])


def test_a_shared_layer_learns_the_sum_of_what_its_copies_learn():
    from nextword.blocks.stack import Stack

    shape = Shape(D, 3, 2, 2, 4, 16, 10)
    shared, copies = SharedStack(shape, NoPosition(shape)), Stack(shape, NoPosition(shape))
    for block in copies.blocks:
        block.load_state_dict(shared.blocks[0].state_dict())
    x_BTD = torch.randn(2, T, D)
    for stack in (shared, copies):
        run(stack, x_BTD)[-1].square().sum().backward()
    for name, weight in shared.blocks[0].named_parameters():
        parts = [dict(block.named_parameters())[name].grad for block in copies.blocks]
        torch.testing.assert_close(weight.grad, sum(parts), atol=1e-4, rtol=1e-4)

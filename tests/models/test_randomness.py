"""Random numbers follow from a seed and a step, and leave the caller's alone."""

import torch

from nextword.models.randomness import seeded


def test_random_numbers_follow_from_seed_and_step_and_leave_the_caller_s_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with seeded(torch.device("cpu"), 1, 2):
        first = torch.rand(4)
    assert torch.equal(torch.rand(3), expected)
    with seeded(torch.device("cpu"), 1, 2):
        assert torch.equal(torch.rand(4), first)
    with seeded(torch.device("cpu"), 1, 3):
        assert not torch.equal(torch.rand(4), first)

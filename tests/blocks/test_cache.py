"""Keys and values that are kept: written in place only for their newest owner."""

from __future__ import annotations

import torch

from nextword.blocks.cache import Reading


def test_buffers_are_written_in_place_only_for_their_newest_owner():
    old = torch.zeros(1, 1, 4, 1)
    new = torch.ones(1, 1, 1, 1)
    assert Reading([2], [1], 1, 8, torch.device("cpu"), in_place=True).append(old, new) is old
    copy = Reading([2], [1], 1, 8, torch.device("cpu")).append(old, new)
    assert copy is not old
    assert copy[0, 0, 2] == 1

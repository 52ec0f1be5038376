"""A network that reads both ways sees the token it has to predict."""

from __future__ import annotations

import torch

from nextword.experiments.bidirectional import TwoWays


def test_a_two_way_network_sees_the_word_it_has_to_predict_and_a_one_way_network_does_not():
    torch.manual_seed(0)
    ids = torch.randint(3, 9, (1, 6))
    other = ids.clone()
    other[0, 4] = 3 + (ids[0, 4] - 2) % 6
    for both in (False, True):
        network = TwoWays(9, both)
        same = torch.equal(network(ids)[:, 3], network(other)[:, 3])
        assert same is not both

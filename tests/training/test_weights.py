"""Copies, moving averages and means of weights."""

import torch
from tiny_networks import make_rnn

from nextword.training import weights


def test_moving_average_follows_the_weights_and_forgets_the_start():
    model = make_rnn()
    averages = weights.copy_weights(model)
    for step in range(1, 200):
        with torch.no_grad():
            model.hidden.weight.fill_(1.0)
        weights.follow(averages, model, 0.9, step)
    assert torch.allclose(averages["hidden.weight"], torch.ones(6, 6), atol=1e-4)
    with weights.swapped(model, {name: torch.zeros_like(t) for name, t in averages.items()}):
        assert not model.hidden.weight.any()
    assert torch.equal(model.hidden.weight, torch.ones(6, 6))


def test_mean_of_several_weights():
    found = weights.mean([{"a": torch.tensor([1.0, 3.0])}, {"a": torch.tensor([3.0, 5.0])}])
    assert found["a"].tolist() == [2.0, 4.0]


def test_shared_weights_are_copied_once():
    model = make_rnn()
    model.head.weight_VD = model.embedding.weight
    copies = weights.copy_weights(model)
    assert copies["head.weight_VD"] is copies["embedding.weight"]
    weights.put_weights(model, {name: tensor + 1 for name, tensor in copies.items()})
    assert torch.equal(model.embedding.weight, copies["embedding.weight"] + 1)

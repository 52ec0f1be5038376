"""Optimizers agree with torch's, and treat a weight by its role."""

from __future__ import annotations

import sys
import types

import pytest
import torch
from families import NEURAL, VOCABULARY, network_of
from tiny_networks import make_rnn

from nextword.core import catalog
from nextword.models.randomness import seeded
from nextword.models.training import NeuralTrainSettings
from nextword.training.optimizers import (
    SGD,
    AdamW,
    Muon,
    Optimizer,
    hidden_matrices,
    make_optimizer,
    orthogonal,
    split_weights,
)


@pytest.mark.parametrize("family", NEURAL)
def test_matrices_but_embeddings_decay_and_muon_takes_those_outside_the_head(family):
    made = network_of(family)
    names = {id(weight): name for name, weight in made.named_parameters()}
    matrices, rest = split_weights(made)
    decays = [name for name, each in made.named_parameters() if each.ndim >= 2 and "embed" not in name]
    assert [names[id(weight)] for weight in matrices] == decays
    assert {names[id(weight)] for weight in rest} == set(names.values()) - set(decays)
    hidden = [name for name in decays if not name.startswith("head.")]
    assert [names[id(weight)] for weight in hidden_matrices(made)] == hidden


def test_an_optimizer_registered_from_outside_is_used(monkeypatch):
    mine = types.ModuleType("optimizers_of_mine")
    mine.plain = lambda network, settings: [SGD(list(network.parameters()), 0.0, 0.0)]
    monkeypatch.setitem(sys.modules, "optimizers_of_mine", mine)
    monkeypatch.setitem(catalog.SLOTS["optimizer"], "mine", "optimizers_of_mine:plain")
    made = network_of("rnn")
    before = made.head.bias_V.detach().clone()
    made.head.bias_V.grad = torch.ones(VOCABULARY)
    make_optimizer(made, NeuralTrainSettings(optimizer="mine")).step(0.5)
    torch.testing.assert_close(made.head.bias_V.detach(), before - 0.5)


def test_only_matrices_decay():
    model = make_rnn()
    matrices, rest = split_weights(model)
    assert {id(weight) for weight in matrices} == {id(model.hidden.weight), id(model.head.weight_VD)}
    assert id(model.embedding.weight) in {id(weight) for weight in rest}
    assert len(matrices) + len(rest) == len([*model.parameters()])


def test_muon_takes_hidden_matrices_and_adamw_the_rest():
    model = make_rnn()
    muon, *others = make_optimizer(model, NeuralTrainSettings(optimizer="muon", precision="fp32")).rules
    assert [id(weight) for weight in muon.weights] == [id(model.hidden.weight)]
    assert all(isinstance(rule, AdamW) for rule in others)
    assert sum(len(rule.weights) for rule in others) == len([*model.parameters()]) - 1


RULES = {
    "sgd": (lambda w: SGD(w, 0.1, 0.9), lambda w: torch.optim.SGD(w, 0.01, 0.9, weight_decay=0.1), 1e-6),
    "adamw": (
        lambda w: AdamW(w, 0.1, (0.9, 0.95)),
        lambda w: torch.optim.AdamW(w, 0.01, (0.9, 0.95), weight_decay=0.1, fused=True),
        0.0,
    ),
    "muon": (  # theirs multiplies in bf16
        lambda w: Muon(w, 0.1, torch.float32),
        lambda w: torch.optim.Muon(w, 0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        0.02,
    ),
}


@pytest.mark.parametrize("name", ["sgd", "adamw", pytest.param("muon", marks=pytest.mark.needs("bf16"))])
def test_rule_agrees_with_torch_s(name):
    make_ours, make_theirs, error = RULES[name]
    with seeded(torch.device("cpu"), 3):
        start, gradients = torch.randn(12, 20), [torch.randn(12, 20) for _ in range(5)]
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    rule, peer = make_ours([ours]), make_theirs([theirs])
    for gradient in gradients:
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        with torch.no_grad():
            rule.step(0.01)
        peer.step()
    assert (ours - theirs).norm() <= error * (theirs - start).norm()


def test_weight_without_a_gradient_stays_as_it_is():
    used, unused = (torch.nn.Parameter(torch.ones(2, 2)) for _ in range(2))
    used.grad = torch.ones(2, 2)
    Optimizer([AdamW([used, unused], 0.1, (0.9, 0.99))]).step(0.1)
    assert torch.equal(unused, torch.ones(2, 2))
    assert not torch.equal(used, torch.ones(2, 2))


def test_orthogonal_has_singular_values_near_one():
    with seeded(torch.device("cpu"), 4):
        found = torch.linalg.svdvals(orthogonal(torch.randn(9, 30)))
    assert float(found.min()) > 0.5
    assert float(found.max()) < 1.3

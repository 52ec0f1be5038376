"""Backpropagation through time: truncated with k >= T is full, random truncation is unbiased, resets hold."""

import math

import numpy as np
import pytest
import torch
from tiny_networks import NoBatches, TinyBigram, make_rnn

from nextword.core.errors import ConfigError
from nextword.data.batches.batch import Batch
from nextword.models.randomness import seeded
from nextword.models.training import NeuralTrainSettings, parse_bptt
from nextword.tasks.objectives import bptt
from nextword.tasks.objectives.next_token import NextToken
from nextword.tasks.objectives.reading import AtOnce, OneByOne
from nextword.training.job import Job
from nextword.training.loop import begin
from nextword.training.update import Learner

CPU = torch.device("cpu")


def network(seed=0, **about):
    made = make_rnn(seed, **about).double()
    with torch.no_grad():
        made.hidden.weight.mul_(1.5)  # so that what stands far back matters
    return made


def batch(B=3, T=12, seed=0, resets=()):
    random = np.random.default_rng(seed)
    ids = random.integers(2, 11, (B, T + 1))
    resets_BT = np.zeros((B, T), bool)
    for row, at in resets:
        resets_BT[row, at] = True
    return Batch(ids[:, :-1].copy(), ids[:, 1:].copy(), resets_BT)


def gradient(model, given, **settings):
    """The gradient of one batch, before any step."""
    about = NeuralTrainSettings(clip=0, unigram=False, precision="fp32", **settings)
    objective = NextToken(about, carries=True)
    state = begin(Job(model, about, NoBatches(), objective))
    Learner(about, objective)._gradient(state, given, given.tokens)
    found = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    model.zero_grad(set_to_none=True)
    return found


@pytest.mark.parametrize("k", [12, 13, 1000])
def test_truncated_with_k_of_a_row_or_more_is_full(k):
    given = batch()
    full = gradient(network(), given, bptt="full")
    assert torch.equal(gradient(network(), given, bptt=f"truncated({k})"), full)


def test_truncated_gradient_is_that_of_chunks_whose_state_is_given():
    model, given = network(), batch(T=12)
    found = gradient(model, given, bptt="truncated(4)")
    state, total = model.start(3), 0.0
    for at in range(0, 12, 4):
        state = tuple(part.detach() for part in state)
        features, state = model.read(torch.from_numpy(given.inputs_BT[:, at : at + 4]), state)
        total = total + model.head.loss(
            features.flatten(0, 1), torch.from_numpy(given.targets_BT[:, at : at + 4]).flatten()
        )
    (total / given.tokens).backward()
    expected = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert torch.allclose(found, expected, atol=1e-12)
    assert not torch.allclose(found, gradient(network(), given, bptt="full"), atol=1e-6)


@pytest.mark.parametrize("p", [0.5, 0.8])
def test_random_truncation_is_unbiased_within_four_standard_errors(p):
    """The mean over 40 x 64 draws is the full gradient: |mean - full| < 4 standard errors of the mean."""
    model, one = network(), batch(B=1, T=6)
    many = Batch(np.repeat(one.inputs_BT, 64, 0), np.repeat(one.targets_BT, 64, 0))
    full = gradient(model, one, bptt="full")
    found = torch.stack([gradient_of_draw(model, many, p, seed) for seed in range(40)])
    error = found.std(dim=0) / math.sqrt(len(found))
    apart = (found.mean(dim=0) - full).abs()
    assert bool((apart <= 4 * error + 1e-12).all())
    assert (found.mean(dim=0) - full).norm() < 0.1 * full.norm()
    assert error.max() > 1e-5  # the lot is really drawn


def gradient_of_draw(model, given, p, seed):
    with seeded(CPU, 7, seed):
        return gradient(model, given, bptt=f"random({p})")


def test_random_truncation_with_p_one_is_full():
    given = batch()
    full = gradient(network(), given, bptt="full")
    assert torch.allclose(gradient(network(), given, bptt="random(1)"), full, atol=1e-12)


def test_variance_of_random_truncation_grows_with_the_length_of_a_row():
    spread = []
    for T in (3, 12):
        model, given = network(), batch(B=2, T=T)
        found = torch.stack([gradient_of_draw(model, given, 0.6, seed) for seed in range(20)])
        spread.append(float(found.std(dim=0).norm() / found.mean(dim=0).norm()))
    assert spread[1] > spread[0]


def test_rows_are_set_back_exactly_where_a_document_begins():
    model, given = network(), batch(B=3, T=10, resets=[(0, 4), (1, 0), (2, 4), (2, 7)])
    ids, state = torch.from_numpy(given.inputs_BT), (torch.randn(3, 6, dtype=torch.float64),)
    for reader in (AtOnce(), OneByOne()):
        features, _ = reader.read(model, ids, given.resets_BT, state)
        alone, _ = model.read(ids[2:3, 7:], model.start(1))
        assert torch.allclose(features[2, 7:], alone[0])
        before, _ = model.read(ids[0:1, :4], (state[0][:1],))
        assert torch.allclose(features[0, :4], before[0])
    whole, after = AtOnce().read(model, ids, given.resets_BT, state)
    single, last = OneByOne().read(model, ids, given.resets_BT, state)
    assert torch.allclose(whole, single)
    assert torch.allclose(after[0], last[0])


def test_carried_state_goes_on_without_its_gradient():
    model, settings = network(), NeuralTrainSettings(bptt="truncated(3)", precision="fp32")
    objective = NextToken(settings, carries=True)
    state = begin(Job(model, settings, NoBatches(), objective))
    learner = Learner(settings, objective)
    learner.update(state, [batch(T=6, seed=1)])
    (h_BH,) = state.carried
    assert not h_BH.requires_grad
    assert h_BH.abs().sum() > 0


def test_model_without_a_state_refuses_truncation_in_one_sentence():
    with pytest.raises(ConfigError, match=r"'train\.bptt' is truncated, but a bigram carries no state"):
        bptt.check(parse_bptt("truncated(3)"), TinyBigram(), "bigram")
    bptt.check(parse_bptt("full"), TinyBigram(), "bigram")

"""One update of the weights: accumulation, clipping, optimizers, label smoothing."""

import numpy as np
import pytest
import torch
from tiny_networks import NoBatches, make_rnn

from nextword.data.batches.batch import Batch
from nextword.models.training import NeuralTrainSettings
from nextword.tasks.objectives.next_token import NextToken
from nextword.training import update
from nextword.training.job import Job
from nextword.training.state import begin
from nextword.training.update import Learner


def batch(B, T, seed, holes=0.0):
    random = np.random.default_rng(seed)
    ids = random.integers(2, 11, (B, T + 1))
    targets = np.where(random.random((B, T)) < holes, -1, ids[:, 1:])
    return Batch(ids[:, :-1].copy(), targets, None)


def learn(model, batches, **about):
    settings = NeuralTrainSettings(precision="fp32", **about)
    state = begin(Job(model, settings, NoBatches(), NextToken(settings)))
    learned = Learner(settings, NextToken(settings)).update(state, batches)
    return learned, torch.cat([weight.detach().flatten() for weight in model.parameters()])


def test_accumulated_batches_are_one_large_batch_each_word_weighing_the_same():
    parts = [batch(3, 5, 1, holes=0.7), batch(3, 5, 2, holes=0.1)]
    joined = Batch(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("inputs_BT", "targets_BT")))
    one, two = (
        learn(make_rnn().double(), given, optimizer="sgd", rate=1.0, clip=0) for given in ([joined], parts)
    )
    assert torch.allclose(one[1], two[1], atol=1e-12)
    assert one[0].loss == pytest.approx(two[0].loss)
    assert one[0].tokens == two[0].tokens == sum(part.tokens for part in parts)


def test_reported_loss_is_nats_per_token():
    model, given = make_rnn(), batch(2, 4, 0)
    features, _ = model.read(torch.from_numpy(given.inputs_BT), model.start(2))
    logp = model.head.log_probs(features.flatten(0, 1))
    expected = -logp.gather(1, torch.from_numpy(given.targets_BT).flatten()[:, None]).mean().detach()
    assert learn(model, [given])[0].loss == pytest.approx(float(expected), rel=1e-6)


def test_gradient_is_cut_to_its_length_and_the_length_before_is_told():
    model = make_rnn()
    for weight in model.parameters():
        weight.grad = torch.full_like(weight, 3.0)
    before = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    norm = update.clip([*model.parameters()], 1.0)
    after = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    assert norm == pytest.approx(float(before.norm()))
    assert float(after.norm()) == pytest.approx(1.0, rel=1e-4)
    assert torch.allclose(after * before.norm(), before, rtol=1e-4)
    assert update.clip([*model.parameters()], 0.0) == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("name", ["sgd", "adamw", "muon"])
def test_every_optimizer_learns(name):
    model, given = make_rnn(), [batch(4, 8, 0)]
    settings = NeuralTrainSettings(
        precision="fp32", optimizer=name, rate=0.5 if name == "sgd" else 0.02, steps=40, momentum=0.5
    )
    state = begin(Job(model, settings, NoBatches(), NextToken(settings)))
    learner = Learner(settings, NextToken(settings))
    losses = [learner.update(state, given).loss for _ in range(40)]
    assert losses[-1] < 0.8 * losses[0]


def test_label_smoothing_raises_the_loss_of_a_sure_model():
    plain, smooth = (learn(make_rnn(), [batch(3, 6, 0)], smoothing=s)[0].loss for s in (0.0, 0.2))
    assert smooth != plain


@pytest.mark.needs("bf16")
def test_bf16_products_learn_nearly_the_same():
    found = {}
    for dtype in ("fp32", "bf16"):
        model, settings = make_rnn(), NeuralTrainSettings(steps=5, precision=dtype)
        state = begin(Job(model, settings, NoBatches(), NextToken(settings)))
        learner = Learner(settings, NextToken(settings))
        found[dtype] = [learner.update(state, [batch(4, 8, 0)]).loss for _ in range(5)]
    assert found["bf16"] == pytest.approx(found["fp32"], rel=0.03)

"""One update of the weights: accumulation, clipping, optimisers, averages, precision, randomness."""

import numpy as np
import pytest
import torch
from tiny_networks import TinyRNN

from nextword.blocks.randomness import seeded
from nextword.core import catalog
from nextword.core.errors import ConfigError
from nextword.data.batches.batch import Batch
from nextword.models import precision, weights
from nextword.models.training import NeuralTrainSettings
from nextword.system import processor, threads
from nextword.system.processor import Processor
from nextword.tasks.objectives.next_token import NextToken
from nextword.training import update
from nextword.training.distributed.ranks import Ranks
from nextword.training.job import Job
from nextword.training.loop import begin
from nextword.training.optimizers import (
    SGD,
    AdamW,
    Muon,
    Optimizer,
    make_optimizer,
    orthogonal,
    split_weights,
)
from nextword.training.update import Learner

CPU = torch.device("cpu")


class NoSource:
    per_epoch, tokens = 1, 0

    def batches(self, epoch, start=0):
        return iter(())


def network(**about):
    with seeded(CPU, 0):
        return TinyRNN(**about)


def batch(B, T, seed, holes=0.0):
    random = np.random.default_rng(seed)
    ids = random.integers(2, 11, (B, T + 1))
    targets = np.where(random.random((B, T)) < holes, -1, ids[:, 1:])
    return Batch(ids[:, :-1].copy(), targets, None)


def learn(model, batches, **about):
    settings = NeuralTrainSettings(precision="fp32", **about)
    state = begin(Job(model, settings, NoSource(), NextToken(settings)))
    learned = Learner(settings, NextToken(settings)).update(state, batches)
    return learned, torch.cat([weight.detach().flatten() for weight in model.parameters()])


def test_accumulated_batches_are_one_large_batch_each_word_weighing_the_same():
    parts = [batch(3, 5, 1, holes=0.7), batch(3, 5, 2, holes=0.1)]
    joined = Batch(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("inputs_BT", "targets_BT")))
    one, two = (
        learn(network().double(), given, optimizer="sgd", rate=1.0, clip=0) for given in ([joined], parts)
    )
    assert torch.allclose(one[1], two[1], atol=1e-12)
    assert one[0].loss == pytest.approx(two[0].loss)
    assert one[0].tokens == two[0].tokens == sum(part.tokens for part in parts)


def test_reported_loss_is_nats_per_token():
    model, given = network(), batch(2, 4, 0)
    features, _ = model.read(torch.from_numpy(given.inputs_BT), model.start(2))
    logp = model.head.log_probs(features.flatten(0, 1))
    expected = -logp.gather(1, torch.from_numpy(given.targets_BT).flatten()[:, None]).mean().detach()
    assert learn(model, [given])[0].loss == pytest.approx(float(expected), rel=1e-6)


def test_gradient_is_cut_to_its_length_and_the_length_before_is_told():
    model = network()
    for weight in model.parameters():
        weight.grad = torch.full_like(weight, 3.0)
    before = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    norm = update.clip([*model.parameters()], 1.0)
    after = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    assert norm == pytest.approx(float(before.norm()))
    assert float(after.norm()) == pytest.approx(1.0, rel=1e-4)
    assert torch.allclose(after * before.norm(), before, rtol=1e-4)
    assert update.clip([*model.parameters()], 0.0) == pytest.approx(1.0, rel=1e-4)


def test_only_matrices_decay():
    model = network()
    matrices, rest = split_weights(model)
    assert {id(weight) for weight in matrices} == {id(model.hidden.weight), id(model.head.weight_VD)}
    assert id(model.embedding.weight) in {id(weight) for weight in rest}
    assert len(matrices) + len(rest) == len([*model.parameters()])


def test_muon_takes_hidden_matrices_and_adamw_the_rest():
    model = network()
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
    with seeded(CPU, 3):
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
    with seeded(CPU, 4):
        found = torch.linalg.svdvals(orthogonal(torch.randn(9, 30)))
    assert float(found.min()) > 0.5
    assert float(found.max()) < 1.3


@pytest.mark.parametrize("name", ["sgd", "adamw", "muon"])
def test_every_optimizer_learns(name):
    model, given = network(), [batch(4, 8, 0)]
    settings = NeuralTrainSettings(
        precision="fp32", optimizer=name, rate=0.5 if name == "sgd" else 0.02, steps=40, momentum=0.5
    )
    state = begin(Job(model, settings, NoSource(), NextToken(settings)))
    learner = Learner(settings, NextToken(settings))
    losses = [learner.update(state, given).loss for _ in range(40)]
    assert losses[-1] < 0.8 * losses[0]


def test_label_smoothing_raises_the_loss_of_a_sure_model():
    plain, smooth = (learn(network(), [batch(3, 6, 0)], smoothing=s)[0].loss for s in (0.0, 0.2))
    assert smooth != plain


def test_random_numbers_follow_from_seed_and_step_and_leave_the_caller_s_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with seeded(CPU, 1, 2):
        first = torch.rand(4)
    assert torch.equal(torch.rand(3), expected)
    with seeded(CPU, 1, 2):
        assert torch.equal(torch.rand(4), first)
    with seeded(CPU, 1, 3):
        assert not torch.equal(torch.rand(4), first)


def test_moving_average_follows_the_weights_and_forgets_the_start():
    model = network()
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
    model = network()
    model.head.weight_VD = model.embedding.weight
    copies = weights.copy_weights(model)
    assert copies["head.weight_VD"] is copies["embedding.weight"]
    weights.put_weights(model, {name: tensor + 1 for name, tensor in copies.items()})
    assert torch.equal(model.embedding.weight, copies["embedding.weight"] + 1)


@pytest.mark.needs("bf16")
def test_bf16_products_learn_nearly_the_same():
    found = {}
    for dtype in ("fp32", "bf16"):
        model, settings = network(), NeuralTrainSettings(steps=5, precision=dtype)
        state = begin(Job(model, settings, NoSource(), NextToken(settings)))
        learner = Learner(settings, NextToken(settings))
        found[dtype] = [learner.update(state, [batch(4, 8, 0)]).loss for _ in range(5)]
    assert found["bf16"] == pytest.approx(found["fp32"], rel=0.03)


WORKS = {"linear 128": 1.5, "linear 512": 2.0, "lstm 128": 0.8, "lstm 512": 1.5}


@pytest.mark.parametrize(
    ("found", "asked", "taken"),
    [
        (Processor("works", ratios=WORKS), "auto", "bf16"),
        (Processor("works", ratios=dict.fromkeys(WORKS, 0.5)), "auto", "fp32"),
        (Processor("works", ratios=dict.fromkeys(WORKS, 0.5)), "bf16", "bf16"),
        (Processor("works", ratios=WORKS), "fp32", "fp32"),
        (Processor("missing", why="emulated"), "auto", "fp32"),
        (Processor("missing", why="emulated"), "bf16", "bf16"),
        (Processor("crashes"), "auto", "fp32"),
        (Processor("unknown"), "auto", "fp32"),
        (Processor("works", "AVX512_CORE_FP16", WORKS), "auto", "fp32"),  # the limit came too late for torch
    ],
)
def test_faster_type_is_taken_unless_one_is_named(found, asked, taken, monkeypatch):
    monkeypatch.setattr(processor, "_answer", found)
    monkeypatch.delenv("NEXTWORD_MAX_CPU_ISA", raising=False)
    assert precision.choose(asked, network(), Ranks()) == taken


def test_lstm_layers_of_each_width_have_a_type_of_their_own(monkeypatch):
    monkeypatch.setattr(processor, "_answer", Processor("works", ratios=WORKS))
    lstm = catalog.find("model", "lstm")
    for width, taken in ((64, "fp32"), (600, "bf16")):
        model = lstm.build(lstm.Settings(hidden=width, layers=1), 5, False)
        assert precision.choose("auto", model, Ranks()) == taken


@pytest.mark.parametrize(
    ("found", "asked", "words"),
    [
        (Processor("crashes", why="bf16 products crash"), "bf16", "crash; set it to auto or fp32"),
        (Processor("crashes", why="float32 products fail", has_float32=False), "auto", "networks cannot be"),
    ],
)
def test_type_that_would_kill_the_process_is_refused_in_one_sentence(found, asked, words, monkeypatch):
    monkeypatch.setattr(processor, "_answer", found)
    with pytest.raises(ConfigError, match=words):
        precision.choose(asked, network(), Ranks())


def test_device_that_is_not_there_gets_one_sentence():
    missing = next(name for name, there in (("cuda", torch.cuda.is_available()), ("mps", False)) if not there)
    with pytest.raises(ConfigError, match=f"'--device {missing}' is not to be had on this machine"):
        precision.find_device(missing)
    assert precision.find_device("cpu") == CPU


def test_threads_are_set_and_set_back():
    before = torch.get_num_threads()
    with threads.using(1) as used:
        assert used == torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    assert threads.allowed() >= 1

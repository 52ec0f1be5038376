"""A training that is written down and taken up again goes on bit for bit, whatever the family."""

import json

import numpy as np
import pytest
import torch
from event_streams import of_kind, until_done
from families import NEURAL
from safetensors.torch import load, save
from tiny_networks import TinyRNN

from nextword.core import catalog
from nextword.core.contracts import END, START, Encoded
from nextword.core.errors import DamagedError
from nextword.core.events import Measure
from nextword.data.batches.batch import make_batches
from nextword.models.network import NeuralLanguageModel
from nextword.models.randomness import seeded
from nextword.models.training import NeuralTrainSettings
from nextword.tasks.networks import HeldOutText
from nextword.tasks.objectives import bptt
from nextword.tasks.objectives.next_token import NextToken
from nextword.training import loop
from nextword.training.job import Job
from nextword.training.state import begin
from nextword.training.validation import Validation

CPU = torch.device("cpu")
VOCABULARY = 23


def text(seed=0, documents=4, length=90):
    """Words mostly follow each other in turn, so that there is something to learn."""
    random, parts = np.random.default_rng(seed), []
    for _ in range(documents):
        jumps = np.where(random.random(length) < 0.9, 1, random.integers(0, 20, length))
        parts.append(np.r_[START, 3 + np.cumsum(jumps) % (VOCABULARY - 3), END])
    return np.concatenate(parts).astype(np.int32)


def held_out():
    ids = text(1, 2, 40)
    return HeldOutText.of([Encoded(ids, 2, 0, 100, 0)], True)


def make(family, **about):
    """A job; small whatever the family's own sizes are."""
    usual = {
        "steps": 20,
        "batch": 3,
        "length": 7,
        "rate": 0.02,
        "valid_every": 4,
        "log_every": 1,
        "threads": 1,
        "precision": "fp32",
    }
    settings = NeuralTrainSettings(**(usual | about))
    with seeded(CPU, 0):
        if family == "tiny":
            network = TinyRNN(VOCABULARY, 6, 0.3)
        else:
            kind = catalog.find("model", family)
            sizes = {"hidden": 16, "layers": 1, "context": 8, "embedding": 16, "dropout": 0.2, "heads": 2}
            known = {name: value for name, value in sizes.items() if name in kind.Settings.model_fields}
            network = kind.build(kind.Settings(**known), VOCABULARY, False)
    kind = "columns" if bptt.is_recurrent(network) else "windows"
    source = make_batches(kind, text(), None, True, settings.batch, settings.length, settings.seed)
    objective = NextToken(settings, kind == "columns")
    return Job(network, settings, source, objective, held_out(), model=NeuralLanguageModel)


def weights(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def run(job, state=None):
    made, events = until_done(loop.fit(job, state))
    rows = [event.values for event in of_kind(events, Measure)]
    timeless = [{k: v for k, v in row.items() if k not in ("seconds", "tokens_per_second")} for row in rows]
    return weights(made.model.network), timeless


def written_at(job, step):
    """The state after so many steps, as bytes and text."""
    for event in loop.fit(job):
        if isinstance(event, loop.SavePoint) and event.state.step == step:
            return save(event.state.to_tensors()), json.dumps(event.state.to_json())
    raise AssertionError("no such step")


def taken_up(job, tensors, values):
    state = begin(job)
    state.restore(load(tensors), json.loads(values))
    return state


@pytest.mark.parametrize("family", ["tiny", *NEURAL])
def test_twenty_steps_are_ten_steps_written_down_and_ten_more(family):
    whole, rows = run(make(family))
    file = written_at(make(family, save_every=10), 10)
    job = make(family)
    rest, later = run(job, taken_up(job, *file))
    assert all(torch.equal(whole[name], rest[name]) for name in whole)
    assert rows[-len(later) :] == later
    assert later[0]["step"] == 11


@pytest.mark.parametrize(
    "about",
    [
        {"forcing": "scheduled(linear)"},
        pytest.param({"precision": "bf16"}, marks=pytest.mark.needs("bf16")),
        {"optimizer": "muon"},
    ],
    ids=lambda about: ",".join(map(str, about.values())),
)
@pytest.mark.parametrize("family", NEURAL)
def test_every_family_learns_in_every_way(family, about):
    _, rows = run(make(family, steps=25, **about))
    losses = [row["loss"] for row in rows if "loss" in row]
    assert np.mean(losses[-5:]) < losses[0]


@pytest.mark.needs("bf16")
@pytest.mark.parametrize("family", NEURAL)
def test_bf16_products_give_nearly_the_loss_of_fp32(family):
    """Emulated where the processor has no bf16: slow, and right."""
    losses = [
        [row["loss"] for row in run(make(family, steps=3, precision=name))[1] if "loss" in row]
        for name in ("fp32", "bf16")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


@pytest.mark.parametrize(
    "about",
    [
        {"bptt": "truncated(3)", "accumulate": 2},
        {"bptt": "random(0.7)"},
        {"forcing": "scheduled(inverse-sigmoid)"},
        {"forcing": "free", "feed": "greedy"},
        {"optimizer": "muon", "weight_decay": 0.1},
        {"optimizer": "sgd", "momentum": 0.9, "schedule": "plateau", "rate": 1.0},
        {"ema": 0.9, "average": 3},
        {"smoothing": 0.1, "patience": 3, "schedule": "sqrt", "decay": 0.3},
    ],
    ids=lambda about: ",".join(map(str, about.values())),
)
@pytest.mark.parametrize("step", [1, 7])
def test_everything_that_decides_what_comes_next_is_in_the_state(about, step):
    whole, rows = run(make("tiny", **about))
    file = written_at(make("tiny", save_every=1, **about), step)
    job = make("tiny", **about)
    rest, later = run(job, taken_up(job, *file))
    assert all(torch.equal(whole[name], rest[name]) for name in whole)
    assert rows[-len(later) :] == later


def test_second_and_third_pause_change_nothing_and_the_edge_of_an_epoch_is_no_edge():
    whole, rows = run(make("tiny"))
    edge = make("tiny").batches.per_epoch
    file = written_at(make("tiny", save_every=1), edge - 1)
    for step in (edge, edge + 1):
        job = make("tiny", save_every=1)
        state = taken_up(job, *file)
        for event in loop.fit(job, state):
            if isinstance(event, loop.SavePoint) and event.state.step == step:
                file = save(event.state.to_tensors()), json.dumps(event.state.to_json())
                break
    job = make("tiny")
    rest, later = run(job, taken_up(job, *file))
    assert all(torch.equal(whole[name], rest[name]) for name in whole)
    assert rows[-len(later) :] == later


def test_caller_who_draws_random_numbers_between_events_changes_nothing():
    whole, _ = run(make("tiny"))
    job = make("tiny")
    found = [torch.rand(3) for _ in loop.fit(job)]
    assert len(found) > 20
    assert all(torch.equal(whole[name], tensor) for name, tensor in job.network.state_dict().items())


def test_state_after_the_last_step_has_nothing_left_to_do():
    whole, _rows = run(make("tiny"))
    file = written_at(make("tiny", save_every=20), 20)
    job = make("tiny")
    rest, later = run(job, taken_up(job, *file))
    assert all(torch.equal(whole[name], rest[name]) for name in whole)
    assert later == []


def test_state_of_another_model_is_refused_in_one_sentence():
    tensors, values = written_at(make("tiny", save_every=1), 1)
    job = make("tiny")
    state = begin(job)
    found = load(tensors)
    del found["network.hidden.weight"]
    with pytest.raises(DamagedError, match="does not fit this model"):
        state.restore(found, json.loads(values))
    with pytest.raises(DamagedError, match="does not fit this model"):
        begin(job).restore(load(tensors), {})


def test_measurement_that_a_signal_ended_is_made_when_training_resumes(monkeypatch):
    whole, rows = run(make("tiny"))
    measure, seen = Validation.measure, []

    def interrupted(self, state):
        seen.append(state.step)
        return iter(()) if len(seen) == 2 else measure(self, state)

    with monkeypatch.context() as patch:
        patch.setattr(Validation, "measure", interrupted)
        file = written_at(make("tiny", save_every=8), 8)
    job = make("tiny")
    rest, later = run(job, taken_up(job, *file))
    assert (later[0]["step"], "valid_nll" in later[0]) == (8, True)
    assert rows[-len(later) :] == later
    assert all(torch.equal(whole[name], rest[name]) for name in whole)


def test_state_of_an_earlier_version_has_no_losses():
    tensors, values = written_at(make("tiny", save_every=2), 2)
    earlier = {name: value for name, value in json.loads(values).items() if not name.endswith("_loss")}
    state = begin(make("tiny"))
    state.restore(load(tensors), earlier)
    assert (state.step, state.first_loss, state.has_diverged) == (2, 0.0, False)

"""The loop of training: what it tells, what it keeps, and when it ends."""

import itertools
import math
import signal

import numpy as np
import pytest
import torch
from event_streams import notes_of, of_kind
from tiny_networks import TinyRNN

from nextword.core.contracts import END, START, Encoded
from nextword.core.errors import TrainingError
from nextword.core.events import Done, Measure, Stage, Step, Valid
from nextword.core.task import Measurement
from nextword.data.batches.batch import Batch, Columns
from nextword.models.network import NeuralLanguageModel
from nextword.models.randomness import seeded
from nextword.models.training import NeuralTrainSettings
from nextword.system.signals import Stop
from nextword.tasks.networks import HeldOutText
from nextword.tasks.objectives.next_token import NextToken
from nextword.training import loop
from nextword.training.clock import Clock
from nextword.training.job import Job

V = 9


def text(documents=3, length=60, seed=0):
    """Each word is followed by the next one, now and then by any: something to learn."""
    random, parts = np.random.default_rng(seed), []
    for _ in range(documents):
        words = [3]
        while len(words) < length:
            words.append(3 + (words[-1] - 2) % 6 if random.random() < 0.9 else int(random.integers(3, V)))
        parts.append(np.r_[START, words, END])
    return np.concatenate(parts).astype(np.int32)


def job(held=True, clock=None, stop=None, **about):
    usual = {"steps": 30, "batch": 4, "length": 8, "rate": 0.05, "threads": 1, "precision": "fp32"}
    settings = NeuralTrainSettings(**(usual | about))
    with seeded(torch.device("cpu"), 1):
        network = TinyRNN(V, 8)
    source = Columns(text(), None, True, settings.batch, settings.length, settings.seed)
    out = HeldOutText.of([Encoded(text(1, 80, 9), 1, 0, 160, 0, 3.0)], True) if held else None
    return Job(
        network,
        settings,
        source,
        NextToken(settings, carries=True),
        out,
        clock or Clock(),
        stop or Stop(),
        model=NeuralLanguageModel,
    )


def test_loop_tells_steps_measurements_and_ends_with_the_model():
    events = list(loop.fit(job()))
    assert isinstance(events[0], Stage)
    assert isinstance(events[-1], Done)
    steps = of_kind(events, Step)
    assert (steps[0].step, steps[-1].step) == (1, 30)
    assert steps[-1].loss < steps[0].loss
    assert all(each.norm > 0 and each.memory > 0 and each.tokens_per_second > 0 for each in steps)
    assert steps[-1].seconds_left == 0
    assert len(of_kind(events, Valid)) >= 2
    rows = [event.values for event in of_kind(events, Measure)]
    assert [row["step"] for row in rows if "loss" in row] == [1, 10, 20, 30]
    assert {"step", "seconds", "tokens", "loss", "rate", "norm", "tokens_per_second"} == set(rows[0])
    measured = next(row for row in rows if "valid_nll" in row)
    assert measured["valid_perplexity"] == pytest.approx(math.exp(measured["valid_nll"]))
    assert events[-1].result.facts["steps"] == 30


def test_best_weights_on_the_held_out_text_are_kept():
    made = job(rate=0.5, steps=40, valid_every=1, schedule="constant")
    *events, done = loop.fit(made)
    found = of_kind(events, Valid)
    best = min(found, key=lambda each: each.values["nll"])
    assert done.result.facts["best_step"] == best.step
    assert next(each.best for each in found)
    again = made.held_out.measure(done.result.model.network)
    assert again.cost == pytest.approx(best.values["nll"], rel=1e-6)


def test_without_held_out_text_the_last_weights_are_kept():
    made = job(held=False)
    *events, done = loop.fit(made)
    assert not of_kind(events, Valid)
    assert done.result.facts["best_step"] == 30
    assert isinstance(done.result.model, NeuralLanguageModel)
    assert not done.result.model.network.training


def test_measurement_has_the_numbers_of_the_contract():
    made = job()
    model = NeuralLanguageModel(made.network)
    ids = text(1, 80, 9)
    logp, _ = model.score(ids[None, 1:], np.array([len(ids) - 1]))
    found = made.held_out.measure(made.network)
    assert found.count == len(ids) - 1
    assert found.values["nll"] == pytest.approx(-float(logp.mean()), rel=1e-5)
    bits = (found.values["nll"] * found.count + 3.0) / math.log(2) / 160
    assert found.values["bits_per_byte"] == pytest.approx(bits, rel=1e-6)


def test_long_held_out_text_is_cut_into_rows_with_nearly_the_same_number():
    ids = text(2, 3000, 5)
    whole = HeldOutText.of([Encoded(ids, 2, 0, 6000, 0)], True)
    assert len(whole.rows) > 10
    assert sum(len(row) - 1 for row in whole.rows) == whole.tokens == len(ids) - 2
    network = job().network
    model = NeuralLanguageModel(network)
    rows = ids.reshape(2, -1)
    logp, _ = model.score(rows[:, 1:], np.full(2, rows.shape[1] - 1))
    assert whole.measure(network).cost == pytest.approx(-float(logp.mean()), rel=0.01)
    some = whole.measure(network, 1000)
    assert 500 < some.count < 2000


def test_patience_ends_a_training_that_gets_no_better():
    *events, done = loop.fit(
        job(rate=30.0, schedule="constant", steps=500, valid_every=1, patience=3, clip=0)
    )
    assert done.result.facts["steps"] < 500
    assert any("no longer improving" in note for note in notes_of(events))


def test_rate_falls_where_the_held_out_text_gets_no_better():
    made = job(rate=0.5, schedule="plateau", warmup=0, steps=20, valid_every=2, log_every=1, plateau=0.5)
    rates = [e.values["rate"] for e in of_kind(loop.fit(made), Measure) if "rate" in e.values]
    assert rates[0] == 0.5
    assert rates[-1] < 0.5
    assert all(later in (rate, rate / 2) for rate, later in itertools.pairwise(rates))


def test_average_of_the_best_is_taken_only_if_it_is_better():
    *events, done = loop.fit(job(average=3, steps=40, schedule="constant", valid_every=4))
    best = min(each.values["nll"] for each in of_kind(events, Valid))
    found = job().held_out.measure(done.result.model.network)
    assert found.values["nll"] == pytest.approx(best, rel=1e-5)


def test_loss_that_is_no_number_stops_with_step_and_batch():
    class Poisoned:
        per_epoch, tokens = 5, 5

        def batches(self, epoch, start=0):
            yield Batch(np.full((1, 2), 3), np.full((1, 2), 4), None)

    made = job()
    made.batches = Poisoned()
    with torch.no_grad():
        made.network.hidden.weight.fill_(math.nan)
    where = r"the loss is nan at step 1 \(batch 1 of epoch 1\), first in the weights 'hidden.weight'"
    with pytest.raises(TrainingError, match=where):
        list(loop.fit(made))
    made.settings = made.settings.model_copy(update={"on_nan": "skip"})
    with pytest.raises(TrainingError, match="the last of 11 in a row"):
        list(loop.fit(made))


def poisoned(made, at):
    """One batch of the job makes the embedding of its words no numbers, and the next ones do not."""
    count, inner = itertools.count(1), made.network.embedding

    class Poison(torch.nn.Module):
        def forward(self, ids):
            found = inner(ids)
            return found * math.nan if next(count) in at else found

    made.network.embedding = Poison()
    return made


def test_batch_whose_loss_is_no_number_is_left_out_if_that_is_set():
    # eight positions a batch: the third, when it is learned from, and again when it is looked at
    made = poisoned(job(held=False, on_nan="skip", log_every=1), range(17, 33))
    *events, done = loop.fit(made)
    notes = notes_of(events)
    assert len(notes) == 1
    assert "at step 3 (batch 3 of epoch 1), first in 'embedding'; the batch is skipped" in notes[0]
    assert (done.result.facts["steps"], done.result.facts["skipped"]) == (30, 1)
    assert all(torch.isfinite(each).all() for each in made.network.parameters())


class EvenClock(Clock):
    """A clock that moves by hand, so that a busy machine changes nothing."""

    now = 0.0

    def used(self):
        return self.now


def test_minutes_end_the_training_in_time_and_the_rate_is_near_zero_then(monkeypatch):
    clock = EvenClock(2.0)
    update = loop.Learner.update

    def slowly(learner, state, batches):
        clock.now += 0.01
        return update(learner, state, batches)

    monkeypatch.setattr(loop.Learner, "update", slowly)
    *events, done = loop.fit(job(steps=0, clock=clock, log_every=1))
    assert 1.2 < clock.used() < 2.0
    assert done.result.facts["steps"] > 20
    rates = [event.values["rate"] for event in of_kind(events, Measure) if "rate" in event.values]
    assert rates[-1] < 0.3 * max(rates)
    assert len(done.result.facts["plan"]) > 1


def test_steps_are_the_most_that_minutes_can_give():
    done = list(loop.fit(job(steps=5, clock=Clock(60.0))))[-1]
    assert done.result.facts["steps"] == 5


def test_epochs_give_the_steps():
    made = job(steps=0, epochs=2)
    done = list(loop.fit(made))[-1]
    assert done.result.facts["steps"] == 2 * made.batches.per_epoch
    assert done.result.facts["epochs"] == 2.0


def test_signal_ends_the_training_after_the_step_with_what_was_learnt():
    with Stop() as stop:
        events = []
        for event in loop.fit(job(stop=stop, steps=1000)):
            events.append(event)
            if isinstance(event, Step) and stop.number is None:
                signal.raise_signal(signal.SIGINT)
    done = events[-1]
    assert done.result.facts["stopped"] == "SIGINT"
    assert done.result.facts["steps"] < 5
    assert stop.exit_code == 130
    assert any("stopped by SIGINT after step" in note for note in notes_of(events))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class SlowHeldOut:
    """Held-out examples whose measurement is said to be slow, and during which a signal can come."""

    tokens = 1_000_000

    def __init__(self, inner, signal_at=()):
        self.inner, self.measured, self.signal_at = inner, [], signal_at

    def measure(self, network, tokens=0, products=None, ranks=None):
        self.measured.append(tokens)
        if len(self.measured) in self.signal_at:
            signal.raise_signal(signal.SIGINT)
        return self.inner.measure(network, 0, products, ranks)

    def describe(self, values):
        return self.inner.describe(values)

    def digest(self):
        return self.inner.digest()


class SlowClock(Clock):
    """A clock by which every step takes a minute, so that measuring would take hours."""

    now = 0.0

    def used(self):
        self.now += 30.0
        return self.now


def stopped_at(made, stop, step):
    """Run a job that a signal stops after a step; the events, with the steps that were saved."""
    events, saved = [], []
    for event in loop.fit(made):
        events.append(event)
        if isinstance(event, loop.SavePoint):
            saved.append((event.state.step, len(made.held_out.measured)))
        if isinstance(event, Step) and event.step >= step and stop.number is None:
            signal.raise_signal(signal.SIGINT)
    return events, saved


def test_signal_saves_first_and_does_not_measure_what_takes_long():
    with Stop() as stop:
        made = job(stop=stop, steps=1000, clock=SlowClock())
        made.held_out = SlowHeldOut(made.held_out)
        events, saved = stopped_at(made, stop, 1)
    assert saved == [(events[-1].result.facts["steps"], 0)]
    assert made.held_out.measured == []
    assert any("the held-out text is not measured after step" in note for note in notes_of(events))
    assert isinstance(events[-1].result.model, NeuralLanguageModel)


def test_signal_ends_a_measurement_and_the_state_is_saved(capfd):
    with Stop() as stop:
        made = job(stop=stop, steps=1000, valid_every=3)
        made.held_out = SlowHeldOut(made.held_out, signal_at=[2])
        events, saved = stopped_at(made, stop, 1000)
    assert saved == [(6, 2)]
    assert next(each.step for each in of_kind(events, Valid)) == 3
    assert events[-1].result.facts["stopped"] == "SIGINT"
    assert "saving what was learned; a second Ctrl-C leaves at once" in capfd.readouterr().err


def test_last_measurement_that_a_signal_ends_is_not_needed():
    with Stop() as stop:
        made = job(stop=stop, steps=4, valid_every=100)
        made.held_out = SlowHeldOut(made.held_out, signal_at=[1])
        events, saved = stopped_at(made, stop, 1000)
    assert saved == [(4, 1)]
    assert events[-1].result.facts["steps"] == 4


def test_training_that_diverges_is_an_error_and_not_a_model():
    with pytest.raises(TrainingError, match=r"made the model worse: no measurement.*lower train.rate"):
        list(loop.fit(job(rate=1000.0, schedule="constant", warmup=0)))
    with pytest.raises(TrainingError, match=r"the loss was .* at the first step and is .* at the last"):
        list(loop.fit(job(held=False, rate=1000.0, schedule="constant", warmup=0)))


def test_weights_of_another_run_that_training_makes_worse_are_kept():
    made = job(rate=1000.0, schedule="constant", warmup=0)
    made.is_warm = True
    before = {name: tensor.clone() for name, tensor in made.network.state_dict().items()}
    *events, done = loop.fit(made)
    assert done.result.facts["best_step"] == 0
    assert any("the weights from before training are kept" in note for note in notes_of(events))
    after = done.result.model.network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_measurement_that_is_nan_is_never_the_best():
    class Lost(SlowHeldOut):
        def measure(self, *about):
            return Measurement({"nll": math.nan}, math.nan, 10)

    made = job()
    made.held_out = Lost(made.held_out)
    with pytest.raises(TrainingError, match="held-out text is NaN or infinite after training"):
        list(loop.fit(made))


def test_signal_gives_up_a_step_before_its_weights_change():
    with Stop() as stop:
        made = job(stop=stop, steps=1000)
        made.held_out = None
        calls, forward = itertools.count(), made.network.hidden.forward

        def signalled(x):
            if next(calls) == 3 * 8 + 2:  # a batch has eight positions: within the fourth
                signal.raise_signal(signal.SIGINT)
            return forward(x)

        made.network.hidden.forward = signalled
        state = loop.begin(made)
        *events, done = loop.fit(made, state)
        resumable = [event.state.step for event in of_kind(events, loop.SavePoint)]
    three = list(loop.fit(job(held=False, steps=1000, stop=StopsAfter(3))))[-1].result.model.network
    assert (done.result.facts["steps"], state.index, resumable) == (3, 3, [3])
    weights = done.result.model.network.state_dict()
    assert all(torch.equal(weights[name], each) for name, each in three.state_dict().items())


class StopsAfter(Stop):
    """A signal that comes between two steps."""

    def __init__(self, steps):
        super().__init__()
        self._asked = 0
        self._steps = steps

    @property
    def number(self):
        self._asked += 1
        return signal.SIGINT if self._asked > self._steps else None

    @number.setter
    def number(self, number):
        pass


def test_long_training_says_beforehand_how_long_it_takes():
    told = notes_of(loop.fit(job(held=False, steps=10, clock=SlowClock())))
    assert any(note.startswith("training takes about ") and "10 steps" in note for note in told)
    limited = SlowClock(100_000.0)
    assert not any("training takes" in note for note in notes_of(loop.fit(job(held=False, clock=limited))))

"""The sizes of a network are chosen from real steps, or by rule where there is no time to try."""

import pytest
from clocks import set_clock
from event_streams import notes_of, until_return

from nextword.data.encode import encode
from nextword.models.ladders import LADDERS
from nextword.runs.settings import plan
from nextword.system import threads
from nextword.tasks.lm import PreparedText
from nextword.training import clock as training_clock
from nextword.training.budget import calibrate as calibration
from nextword.training.budget.calibrate import calibrate
from nextword.training.budget.plan import Plan, Plans
from nextword.training.budget.trial import Trial
from nextword.training.clock import Clock
from nextword.training.order import Conditions


@pytest.mark.slow
@pytest.mark.parametrize("family", ["lstm", "transformer", "window"])
def test_a_plan_is_chosen_from_real_steps(meetings, family):
    settings = plan(family, tokenizer="characters", sets={"train.threads": 1, "train.rate": 0.003})
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    chosen, told = until_return(calibrate(settings, PreparedText(text), Conditions(Clock(20.0))))
    assert chosen.train.rate == 0.003
    assert chosen.train.batch >= 4
    assert chosen.model.hidden in [rung.settings["model.hidden"] for rung in LADDERS[family]]
    assert any(note.startswith("plan: ") for note in notes_of(told))


def test_no_step_is_tried_when_the_time_is_over(meetings):
    settings = plan("lstm", tokenizer="characters")
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    chosen, told = until_return(calibrate(settings, PreparedText(text), Conditions(Clock(1e-3))))
    assert chosen.model.hidden == LADDERS["lstm"][0].settings["model.hidden"]
    assert any("the time is up" in note for note in notes_of(told))


def test_a_plan_made_before_is_used_and_no_step_is_tried(meetings, monkeypatch):
    settings = plan("lstm", tokenizer="characters")
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    made = Plan({"model.hidden": 48, "train.threads": 1}, {"about": "small", "parameters": 7})
    conditions = Conditions(Clock(60.0), plans=Plans.from_json(Plans({"lstm": made}).to_json()))
    monkeypatch.setattr(calibration, "try_steps", None)
    chosen, told = until_return(calibrate(settings, PreparedText(text), conditions))
    assert (chosen.model.hidden, chosen.train.threads) == (48, 1)
    assert chosen.text == settings.text
    assert notes_of(told) == ["plan: the one made before for lstm: small, 7 parameters"]


def test_what_was_chosen_is_kept_as_a_plan(meetings):
    settings = plan("lstm", tokenizer="characters", sets={"train.rate": 0.003})
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    conditions = Conditions(Clock(1e-3))
    chosen, _ = until_return(calibrate(settings, PreparedText(text), conditions))
    found = conditions.plans.find(settings)
    assert found.applied(settings).to_toml() == chosen.to_toml()
    assert "train.rate" not in found.settings
    assert found.figures["parameters"] > 0


@pytest.mark.parametrize("are_shared", [False, True])
def test_a_plan_for_several_seeds_costs_none_of_them_time(meetings, monkeypatch, are_shared):
    settings = plan("lstm", tokenizer="characters")
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    now = iter(range(0, 100_000, 10))  # every look at the clock takes ten seconds
    set_clock(monkeypatch, training_clock, calibration, monotonic=lambda: float(next(now)))
    conditions = Conditions(Clock(1.0), plans=Plans(are_shared=are_shared))
    until_return(calibrate(settings, PreparedText(text), conditions))
    assert (conditions.clock.used() <= 30) == are_shared


@pytest.mark.parametrize(("used", "is_told"), [(0.0, False), (0.9, True)])
def test_a_busy_machine_is_told(meetings, monkeypatch, used, is_told):
    settings = plan("lstm-nano", tokenizer="characters", sets={"train.threads": 1, "train.length": 16})
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    monkeypatch.setattr(threads.Others, "look", lambda self: used * threads.allowed())
    _, told = until_return(calibrate(settings, PreparedText(text), Conditions(Clock(5.0))))
    assert any("the machine is busy" in note for note in notes_of(told)) == is_told


@pytest.mark.parametrize("is_extra", [False, True])
def test_waiting_takes_nothing_from_trials_and_training(monkeypatch, is_extra):
    now = {"work": 0.0, "clock": 0.0}
    set_clock(monkeypatch, calibration, thread_time=lambda: now["work"], monotonic=lambda: now["clock"])
    allowance = calibration.Allowance(4.0, 60.0, is_extra)
    now.update(work=1.0, clock=5.0)  # for four seconds another program had the processor
    assert allowance.left() == 3.0
    assert allowance.for_training() == (60.0 if is_extra else 59.0)
    now.update(clock=9.0)
    assert allowance.left() < 0


@pytest.mark.parametrize(("speed", "batch"), [(40_000.0, 128), (900.0, 16)])
def test_batches_are_made_smaller_where_the_guess_was_far_too_high(meetings, monkeypatch, speed, batch):
    settings = plan("lstm", tokenizer="characters", sets={"train.length": 32, "train.threads": 1})
    text, _ = until_return(encode(meetings, settings.text, settings.data))
    tried = []

    def trial(settings, *rest):
        tried.append(settings.train.batch)
        tokens = 32 * settings.train.batch
        return Trial(speed, tokens / speed, tokens, epoch=1000)

    monkeypatch.setattr(calibration, "try_steps", trial)
    monkeypatch.setattr(calibration.Allowance, "left", lambda self: 1.0 if len(tried) < 2 else 0.0)
    chosen, _ = until_return(calibrate(settings, PreparedText(text), Conditions(Clock(600.0))))
    assert tried[0] == 128
    assert tried[-1] == chosen.train.batch == batch

"""``--minutes`` and ``--estimate`` of taggers and classifiers, whose examples are few."""

from pathlib import Path

import pytest
from event_streams import notes_of, until_return
from labelled_texts import labelled_texts, tagged_sentences

import nextword
from nextword.api import train
from nextword.cli.show import Status
from nextword.core.events import Step
from nextword.core.task import Preparation
from nextword.runs.settings import plan
from nextword.training import loop
from nextword.training.budget import calibrate as calibration
from nextword.training.budget.calibrate import calibrate
from nextword.training.budget.trial import Trial
from nextword.training.clock import Clock
from nextword.training.job import make_job
from nextword.training.order import Conditions

DATA = {"tag": ("train.conll", tagged_sentences), "classify": ("train.tsv", labelled_texts)}
UNITS = {"tag": "words", "classify": "texts"}
SMALL = {"model.hidden": 8, "model.embedding": 8, "model.spelling_width": 8, "train.threads": 1}


@pytest.fixture(params=DATA)
def task(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, make = DATA[request.param]
    Path(name).write_text(make())
    return request.param


def planned(task, monkeypatch, seconds, speed=1000.0, **sets):
    """Choose settings where every size trains at this speed."""
    settings = plan("lstm", task=task, sets={"train.threads": 1} | sets)
    about = settings.find_task()
    examples = about.examples([DATA[task][0]], (), settings)
    _, prepared = until_return(about.prepare(examples, settings, Preparation()))[0]
    epoch = len(prepared.learned) if task == "classify" else prepared.facts.words
    made = Trial(speed, 10 / speed, 10.0, epoch)
    monkeypatch.setattr(calibration, "try_steps", lambda *given, **named: made)
    chosen, told = until_return(calibrate(settings, prepared, Conditions(Clock(seconds))))
    return chosen, epoch, notes_of(told)


def test_minutes_keep_dropout_stop_early_and_end_when_more_epochs_do_not_help(task, monkeypatch):
    chosen, epoch, notes = planned(task, monkeypatch, seconds=1e5, **{"train.epochs": 12})
    default = plan("lstm", task=task)
    assert chosen.model.dropout == default.model.dropout
    assert chosen.train.patience > 0
    assert chosen.train.batch == 4
    assert chosen.train.steps * 10 >= 12 * epoch
    assert chosen.train.steps < 1e5
    unit = UNITS[task]
    assert any(f" {unit} at 1,000 per second" in note for note in notes)


def test_a_size_is_chosen_that_can_be_trained_for_many_epochs(task, monkeypatch):
    sizes = [rung.settings["model.hidden"] for rung in plan("lstm", task=task).find_family().ladder]
    _, epoch, _ = planned(task, monkeypatch, seconds=1e5)
    short, _, _ = planned(task, monkeypatch, seconds=20.0, speed=epoch / 20)
    long, _, _ = planned(task, monkeypatch, seconds=20.0, speed=50 * epoch)
    assert short.model.hidden == sizes[0]
    assert long.model.hidden == sizes[-1]


def test_settings_that_were_named_stay(task, monkeypatch):
    named = {"train.batch": 7, "train.patience": 0, "train.steps": 5, "model.hidden": 20}
    chosen, _, _ = planned(task, monkeypatch, seconds=100.0, **named)
    assert (chosen.train.batch, chosen.train.patience, chosen.train.steps) == (7, 0, 5)
    assert chosen.model.hidden == 20


def test_an_estimate_counts_what_the_task_predicts(task):
    told = nextword.estimate(DATA[task][0], task=task, model="lstm", set=SMALL | {"train.epochs": 2})
    unit = UNITS[task]
    assert told[unit] > 0
    assert f"{unit}_per_second" in told
    assert "tokens" not in told
    run = nextword.train(DATA[task][0], task=task, model="lstm", set=SMALL | {"train.epochs": 2})
    assert (told["parameters"], told["steps"]) == (run.parameters, run.facts.training["steps"])


def test_progress_counts_what_the_task_predicts(task):
    order = train.Order(data=(DATA[task][0],), task=task, model="window", sets=SMALL | {"train.steps": 2})
    events = [event for event in train.run(order, "run") if isinstance(event, Step)]
    shown = Status()
    shown.add(events[0])
    assert f"{UNITS[task]}/s" in shown.details()


def test_part_of_many_held_out_examples_is_measured_and_always_the_same(task):
    settings = plan("window", task=task, sets=SMALL | {"data.hold_out": 0.5})
    about = settings.find_task()
    examples = about.examples([DATA[task][0]], (), settings)
    settings, prepared = until_return(about.prepare(examples, settings, Preparation()))[0]
    held_out, network = about.held_out(settings, prepared), about.build(settings, prepared)
    few, again = (held_out.measure(network, held_out.tokens // 4) for _ in range(2))
    assert few == again
    assert 0 < few.count < 0.5 * held_out.tokens
    assert held_out.measure(network).count == held_out.tokens


def test_time_is_reserved_for_what_is_measured_again(task):
    clock = Clock(1e6)
    settings = plan("window", task=task, sets=SMALL | {"train.steps": 2, "data.hold_out": 0.5})
    about = settings.find_task()
    examples = about.examples([DATA[task][0]], (), settings)
    settings, prepared = until_return(about.prepare(examples, settings, Preparation()))[0]
    _, job = until_return(make_job(settings, prepared, Conditions(clock)))[0]
    list(loop.fit(job))
    for other in ("leave", "save", "measure"):
        clock.release(other)
    assert clock.reserved() > 0  # a class's temperature, the score of the tag O

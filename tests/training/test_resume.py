"""A training that died goes on as if nothing had happened: weights, rows, text, for every family."""

import json
import logging
import os

import pytest
import torch
from event_streams import notes_of
from families import NEURAL
from small_trainings import TEXT, files, finished, killed_after, order

import nextword
from nextword.api.train import Order, run
from nextword.core.errors import ConfigError, RunError
from nextword.core.events import Done, Measure, Note
from nextword.runs import saved
from nextword.store.replace import locked, sibling_name

# An epoch has an odd number of batches then, so that its edge falls within an update.
ACCUMULATED = {"train.accumulate": 2, "train.batch": 2}


@pytest.mark.parametrize("about", [{}, ACCUMULATED], ids=["each", "accumulated"])
@pytest.mark.parametrize("family", NEURAL)
def test_every_family_goes_on_bit_for_bit_from_anywhere_any_number_of_times(family, about, text, tmp_path):
    asked = order(text, family, **about)
    whole, _ = finished(asked, tmp_path / "whole")
    facts = whole.facts.training
    edge = round(facts["steps"] / facts["epochs"])
    assert 8 < edge < 12
    out, first = tmp_path / "r", True
    for step in (1, 7, edge - 1, edge, edge + 1):
        saving = order(text, family, **about, **{"train.save_every": step})
        killed_after(step, saving, out, resume=not first)
        first = False
    made, notes = finished(asked, out, resume=True)
    assert f"resuming after step {edge + 1} of {out}" in notes
    assert files(tmp_path / "whole") == files(out)
    assert made.generate("the cat", seed=1) == whole.generate("the cat", seed=1)
    assert made.facts.training["resumed"] == [1, 7, edge - 1, edge, edge + 1]
    assert made.facts.data == whole.facts.data
    assert sorted(os.listdir(out)) == sorted(os.listdir(tmp_path / "whole"))


@pytest.mark.parametrize(
    "about",
    [
        {"train.accumulate": 2, "train.bptt": "truncated(3)"},
        {"train.ema": 0.9, "train.average": 2, "train.optimizer": "muon"},
        {"train.forcing": "scheduled(linear)", "train.schedule": "plateau", "train.patience": 3},
    ],
    ids=["accumulate", "ema", "forcing"],
)
@pytest.mark.parametrize("family", ["rnn", "transformer"])
def test_everything_a_training_remembers_is_in_its_checkpoint(family, about, text, tmp_path):
    if family == "transformer":
        about = {key: value for key, value in about.items() if "bptt" not in key and "forcing" not in key}
    asked = order(text, family, **about)
    finished(asked, tmp_path / "whole")
    killed_after(5, order(text, family, **about, **{"train.save_every": 5}), tmp_path / "r")
    finished(asked, tmp_path / "r", resume=True)
    assert files(tmp_path / "whole") == files(tmp_path / "r")


def test_what_is_not_said_again_is_as_it_was(text, tmp_path):
    asked = order(text, **{"train.save_every": 4})
    finished(asked, tmp_path / "whole")
    killed_after(4, asked, tmp_path / "r")
    finished(Order(), tmp_path / "r", resume=True)
    assert files(tmp_path / "whole") == files(tmp_path / "r")
    assert (tmp_path / "whole/config.toml").read_text() == (tmp_path / "r/config.toml").read_text()


def test_folder_without_a_checkpoint_starts_from_the_beginning_and_says_so(text, tmp_path):
    made, notes = finished(order(text), tmp_path / "r", resume=True)
    assert any(
        "there is no checkpoint yet" in note and "training starts from the beginning" in note
        for note in notes
    )
    assert made.facts.training["steps"] == 14
    _, notes = finished(order(text), tmp_path / "r", resume=True)
    assert any("is finished; there is nothing to resume" in note for note in notes)


def test_what_was_left_by_a_kill_at_the_very_end_goes_when_the_finished_run_is_resumed(text, tmp_path):
    finished(order(text), tmp_path / "r")
    before = files(tmp_path / "r")
    left = sibling_name((tmp_path / "r").resolve())
    left.mkdir()
    (left / "config.toml").write_text("half")
    (tmp_path / ".r.lock").write_text("1")
    _, notes = finished(order(text), tmp_path / "r", resume=True)
    assert any("is finished" in note for note in notes)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".r.")) == []
    assert files(tmp_path / "r") == before


def test_changed_settings_are_refused_with_the_difference_and_harmless_ones_are_not(text, tmp_path):
    killed_after(4, order(text, **{"train.save_every": 4}), tmp_path / "r")
    with pytest.raises(ConfigError, match=r"model.hidden was 16 and is 17; train.batch was 4 and is 5"):
        finished(order(text, **{"model.hidden": 17, "train.batch": 5}), tmp_path / "r", resume=True)
    with pytest.raises(ConfigError, match=r"'train.steps' is 2, but '.*' has already made 4"):
        finished(order(text, **{"train.steps": 2}), tmp_path / "r", resume=True)
    made, _ = finished(order(text, **{"train.steps": 20, "train.log_every": 2}), tmp_path / "r", resume=True)
    assert made.facts.training["steps"] == 20
    assert made.facts.training["plan"] == [[0, 14], [4, 20]]


def test_changed_text_is_refused(text, tmp_path):
    mine = tmp_path / "t.txt"
    mine.write_text(TEXT)
    killed_after(4, order(mine, **{"train.save_every": 4}), tmp_path / "r")
    mine.write_text(TEXT.replace("mat", "map", 1))
    with pytest.raises(RunError, match=r"the text is not the one that .* was started with: it had .* bytes"):
        finished(order(mine), tmp_path / "r", resume=True)
    mine.write_text(TEXT)
    finished(order(mine), tmp_path / "r", resume=True)


def test_damaged_checkpoint_costs_the_steps_since_the_one_before(text, tmp_path):
    asked = order(text, **{"train.save_every": 4})
    finished(asked, tmp_path / "whole")
    killed_after(8, asked, tmp_path / "r")
    name = (tmp_path / "r/checkpoint/LAST").read_text().strip()
    state = tmp_path / "r/checkpoint" / name / "state.safetensors"
    data = bytearray(state.read_bytes())
    data[-5] ^= 1
    state.write_bytes(data)
    _, notes = finished(asked, tmp_path / "r", resume=True)
    assert any(f"{name}/state.safetensors was changed" in note and ".damaged" in note for note in notes)
    assert any("the steps after step 4 are lost" in note for note in notes)
    assert files(tmp_path / "whole") == files(tmp_path / "r")


def test_without_resume_an_unfinished_training_is_left_alone(text, tmp_path):
    killed_after(4, order(text, **{"train.save_every": 4}), tmp_path / "r")
    with pytest.raises(RunError, match="unfinished training run; resume it with --resume"):
        finished(order(text), tmp_path / "r")
    with pytest.raises(ConfigError, match="cannot be combined"):
        finished(order(text), tmp_path / "r", resume=True, overwrite=True)
    with pytest.raises(ConfigError, match="give its folder with --out"):
        finished(order(text), None, resume=True)
    made, _ = finished(order(text, **{"model.hidden": 8}), tmp_path / "r", overwrite=True)
    assert made.settings.model.hidden == 8


def test_second_trainer_hears_that_the_folder_is_busy(text, tmp_path):
    killed_after(4, order(text, **{"train.save_every": 4}), tmp_path / "r")
    with locked(tmp_path / "r"), pytest.raises(RunError, match="is being written by another process"):
        finished(order(text), tmp_path / "r", resume=True)


def test_old_run_stays_until_the_new_one_is_whole(text, tmp_path):
    finished(order(text), tmp_path / "r")
    before = files(tmp_path / "r")
    killed_after(4, order(text, **{"train.save_every": 4, "model.hidden": 8}), tmp_path / "r", overwrite=True)
    assert files(tmp_path / "r") == before
    saved.load(tmp_path / "r", verify=True)
    made, _ = finished(order(text, **{"model.hidden": 8}), tmp_path / "r", resume=True)
    assert made.settings.model.hidden == 8


def test_folder_that_is_deleted_on_the_way_is_made_again(text, tmp_path):
    import shutil

    out = tmp_path / "r"
    for event in run(order(text, **{"train.save_every": 2}), out):
        if out.exists() and not isinstance(event, Done):
            shutil.rmtree(out)
    assert saved.load(out, verify=True).facts.training["steps"] == 14


def test_checkpoint_that_cannot_be_written_is_told_once_and_the_training_goes_on(text, tmp_path, monkeypatch):
    from nextword.system import disk

    free = disk.free_bytes
    monkeypatch.setattr(disk, "free_bytes", lambda folder: 99)
    events = run(order(text, **{"train.save_every": 2}), tmp_path / "r")
    said = notes_of(events)
    monkeypatch.setattr(disk, "free_bytes", free)
    told = [note for note in said if note.startswith("no checkpoint of step")]
    assert len(told) == 1
    assert "has 99 free" in told[0]
    assert saved.load(tmp_path / "r").facts.training["steps"] == 14


@pytest.mark.slow  # the minutes pass, however busy the machine is
def test_minutes_go_on_where_they_were_and_the_recorded_plan_is_kept(text, tmp_path):
    finished(order(text), tmp_path / "first")  # compiles what is compiled once
    small = {
        "train.threads": 1, "model.hidden": 16, "train.batch": 4, "train.length": 8, "train.save_every": 5,
        "train.log_every": 1,  # an event a step, so that no checkpoint passes unseen
    }  # fmt: skip
    asked = Order((str(text),), model="rnn", tokenizer="words", minutes=0.3, sets=small)
    killed_after(10, asked, tmp_path / "r")
    name = (tmp_path / "r/checkpoint/LAST").read_text().strip()
    then = json.loads((tmp_path / "r/checkpoint" / name / "state.json").read_text())
    made, _ = finished(asked, tmp_path / "r", resume=True)
    plan = made.facts.training["plan"]
    assert plan[: len(then["state"]["plan"]) - 1] == then["state"]["plan"][:-1]
    seconds = [row["seconds"] for row in made.metrics if "loss" in row]
    assert seconds == sorted(seconds)
    assert made.facts.training["steps"] > 10


def test_python_interface_keeps_checkpoints_too(text, tmp_path, caplog):
    asked = order(text, **{"train.save_every": 4})
    killed_after(4, asked, tmp_path / "r")
    with caplog.at_level(logging.WARNING, "nextword"):
        made = nextword.train(out=tmp_path / "r", resume=True)
    assert "resuming after step 4" in caplog.text
    assert all(torch.isfinite(each).all() for each in made.model.network.state_dict().values())


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGUSR1"])
def test_run_that_a_signal_stopped_can_be_used_and_gone_on_with_exactly(name, text, tmp_path):
    import signal

    finished(order(text), tmp_path / "whole")
    events, said = run(order(text), tmp_path / "r"), []
    for event in events:
        if isinstance(event, Measure) and event.values.get("step") == 5 and "loss" in event.values:
            signal.raise_signal(getattr(signal, name))
        said += [event.message] if isinstance(event, Note) else []
    assert "to resume later, run the same command with --resume" in said
    stopped = saved.load(tmp_path / "r", verify=True)
    assert (stopped.facts.training["stopped"], stopped.facts.training["steps"]) == (name, 5)
    made, notes = finished(order(text), tmp_path / "r", resume=True)
    assert any("resuming after step 5" in note for note in notes)
    assert made.facts.training["stopped"] is None
    assert files(tmp_path / "whole") == files(tmp_path / "r")
    assert not (tmp_path / "r" / "checkpoint").exists()

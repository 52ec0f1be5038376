"""A task that another package registers is trained, resumed, evaluated and predicted like our own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from places import SUPPORT

import nextword
from nextword.cli import main
from nextword.core import catalog

OUTSIDE = SUPPORT / "outside"
LINES = "".join(f"{'ab' * (n % 5 + 1)}c\tearly\n{'xyz' * (n % 4 + 1)}w\tlate\n" for n in range(60))


pytestmark = pytest.mark.usefixtures("outside")


@pytest.fixture
def lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.tsv").write_text(LINES)
    return "lines.tsv"


def test_both_families_are_listed_with_their_task():
    assert "sort" in catalog.names("task")
    assert {"letter-counts", "letter-sums"} <= set(catalog.names("model"))


@pytest.mark.parametrize("model", ["letter-counts", "letter-sums"])
def test_train_eval_and_predict(model, lines, capsys):
    assert main.run(["train", lines, "--task", "sort", "--model", model, "--out", "run"]) == 0
    assert "next: nextword predict run FILE" in capsys.readouterr().err
    assert main.run(["eval", "run", lines, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"accuracy": 1.0, "lines": 120}
    Path("new.txt").write_text("abab\nzyx\n")
    assert main.run(["predict", "run", "new.txt"]) == 0
    assert capsys.readouterr().out == "early\nlate\n"
    assert main.run(["predict", "run", "new.txt", "--json"]) == 0
    assert capsys.readouterr().out == '{"label": "early"}\n{"label": "late"}\n'


def test_the_run_says_what_it_is(lines):
    run = nextword.train(lines, model="letter-sums", out="run")
    assert run.describe() == "letter-sums over 2 labels"
    assert run.summary()["valid_accuracy"] == 1.0
    card = Path("run/README.md").read_text()
    assert "A sorter of the family `letter-sums`" in card
    assert "nextword predict . FILE" in card
    assert 'task = "sort"' in Path("run/config.toml").read_text()


def test_auxiliary_losses_are_shown_by_their_names(lines):
    run = nextword.train(lines, model="letter-sums", set={"train.log_every": 1})
    rows = [row for row in run.metrics if "loss" in row]
    assert all(0 < row["loss_size"] < row["loss"] for row in rows)


def test_verbs_of_language_models_refuse_it_in_one_sentence(lines, capsys):
    nextword.train(lines, model="letter-counts", out="run")
    assert main.run(["score", "run", lines]) == 1
    assert "'run' is a sorter, and this needs a language model" in capsys.readouterr().err


def test_a_model_of_another_task_is_refused(lines, capsys):
    assert main.run(["train", lines, "--task", "lm", "--model", "letter-counts"]) == 1
    assert "'letter-counts' is a model for the task 'sort', but the task is 'lm'" in capsys.readouterr().err
    assert main.run(["train", lines, "--task", "sort"]) == 1
    assert "name one with --model" in capsys.readouterr().err


def test_mistakes_in_a_file_name_its_line(lines, capsys):
    Path(lines).write_text("no label here\n")
    assert main.run(["train", lines, "--model", "letter-counts"]) == 1
    assert "lines.tsv:1: a line must be: text TAB label" in capsys.readouterr().err


def test_a_killed_training_resumes_to_the_same_weights(lines):
    sets = {"train.steps": 1500, "train.save_every": 300, "train.precision": "fp32", "train.threads": 1}
    nextword.train(lines, model="letter-sums", set=sets, out="whole")
    words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "nextword", "train", lines, "--model", "letter-sums", "--out", "cut"]
    path = os.pathsep.join([str(OUTSIDE), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen([*command, *words], env=os.environ | {"PYTHONPATH": path}) as process:
        while process.poll() is None and not Path("cut/checkpoint/LAST").exists():
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert not Path("cut/model.safetensors").exists()
    assert main.run([*command[3:], "--resume"]) == 0
    assert Path("cut/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


def test_minutes_choose_a_size_and_an_estimate_trains_nothing(lines, capsys):
    assert main.run(["train", lines, "--model", "letter-sums", "--estimate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] > 0
    run = nextword.train(lines, model="letter-sums", minutes=0.05, set={"train.steps": 20})
    assert run.settings.model.hidden in (4, 8)

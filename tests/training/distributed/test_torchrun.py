"""The real launcher: torchrun starts the ranks again after one was killed, and hands on its signals."""

import json
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256

import pytest
from small_texts import TWO_DOCUMENTS

TEXT = TWO_DOCUMENTS * 40
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SETS = {
    "model.hidden": 16, "model.layers": 1, "train.batch": 4, "train.length": 8, "train.save_every": 20,
    "train.timeout": 60, "model.dropout": 0.1,
}  # fmt: skip


def command(name, steps, *more, torchrun=()):
    sets = [word for key, value in SETS.items() for word in ("--set", f"{key}={value}")]
    train = ["-m", "nextword", "train", "t.txt", "--model", "lstm", "--tokenizer", "words", "--out", name]
    return [*TORCHRUN, *torchrun, *train, *sets, "--set", f"train.steps={steps}", *more]


def begin(folder, arguments, name):
    """Start it with its output in a file."""
    (folder / "t.txt").write_text(TEXT)
    with open(folder / f"{name}.log", "wb") as log:
        return subprocess.Popen(arguments, cwd=folder, stdout=log, stderr=log)


def until_saved(folder, name, process):
    """Wait for the first checkpoint."""
    until = time.monotonic() + 120
    while not (folder / name / "checkpoint" / "LAST").exists():
        assert process.poll() is None, (folder / f"{name}.log").read_text()
        assert time.monotonic() < until
        time.sleep(0.01)


def rank(number, launcher):
    """The process id of a rank."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/environ", "rb") as environ:
                parent = int(stat.read().rpartition(")")[2].split()[1])
                if parent == launcher and f"RANK={number}".encode() in environ.read().split(b"\0"):
                    return int(name)
        except (OSError, ValueError):
            continue
    raise AssertionError("there is no such rank")


def weights(folder, name):
    return sha256((folder / name / "model.safetensors").read_bytes()).hexdigest()


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="ranks are found in /proc")


@needs_proc
def test_killed_rank_is_started_again_and_the_end_is_the_same(tmp_path):
    process = begin(tmp_path, command("hurt", 200, torchrun=["--max-restarts", "2"]), "hurt")
    until_saved(tmp_path, "hurt", process)
    os.kill(rank(1, process.pid), signal.SIGKILL)
    assert process.wait(240) == 0, (tmp_path / "hurt.log").read_text()
    whole = begin(tmp_path, command("whole", 200), "whole")
    assert whole.wait(240) == 0, (tmp_path / "whole.log").read_text()
    facts = json.loads((tmp_path / "hurt" / "training.json").read_text())["training"]
    assert facts["ranks"] == 2
    assert len(facts["resumed"]) == 1
    assert weights(tmp_path, "hurt") == weights(tmp_path, "whole")
    assert (tmp_path / "whole.log").read_text().count("saved lstm") == 1


@pytest.mark.slow
@needs_proc
def test_killed_first_rank_is_started_again_also_where_something_is_overwritten(tmp_path):
    assert begin(tmp_path, command("hurt", 25), "hurt").wait(240) == 0
    old = weights(tmp_path, "hurt")
    arguments = command("hurt", 200, "--overwrite", torchrun=["--max-restarts", "1"])
    process = begin(tmp_path, arguments, "hurt")
    until_saved(tmp_path, "hurt", process)
    assert weights(tmp_path, "hurt") == old
    os.kill(rank(0, process.pid), signal.SIGKILL)
    assert process.wait(240) == 0, (tmp_path / "hurt.log").read_text()
    assert begin(tmp_path, command("whole", 200), "whole").wait(240) == 0
    assert weights(tmp_path, "hurt") == weights(tmp_path, "whole") != old


@pytest.mark.slow
def test_signal_to_the_launcher_saves_and_ends(tmp_path):
    process = begin(tmp_path, command("stopped", 100_000), "stopped")
    until_saved(tmp_path, "stopped", process)
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    facts = json.loads((tmp_path / "stopped" / "training.json").read_text())["training"]
    assert facts["stopped"] == "SIGTERM"
    text = (tmp_path / "stopped.log").read_text()
    assert "to resume later, run the same command with --resume" in text
    steps = facts["steps"] + 10
    again = begin(tmp_path, command("stopped", steps, "--resume"), "again")
    assert again.wait(240) == 0, (tmp_path / "again.log").read_text()


@pytest.mark.slow
def test_minutes_of_several_ranks_end_in_time_with_the_plan_of_the_first(tmp_path):
    arguments = [*TORCHRUN, "-m", "nextword", "train", "t.txt", "--model", "lstm", "--tokenizer", "words",
                 "--minutes", "1", "--out", "minutes"]  # fmt: skip
    began = time.monotonic()
    process = begin(tmp_path, arguments, "minutes")
    assert process.wait(120) == 0, (tmp_path / "minutes.log").read_text()
    assert time.monotonic() - began < 90
    facts = json.loads((tmp_path / "minutes" / "training.json").read_text())["training"]
    assert facts["ranks"] == 2
    assert facts["plan"][-1][1] >= facts["steps"] > 1


@pytest.mark.slow
def test_restarts_need_a_folder_that_can_be_found_again(tmp_path):
    arguments = [each for each in command("x", 10, torchrun=["--max-restarts", "1"]) if each != "x"]
    arguments.remove("--out")
    process = begin(tmp_path, arguments, "x")
    assert process.wait(120) != 0
    assert "name it with --out RUN" in (tmp_path / "x.log").read_text()

"""Signals while a neural model learns: what was learnt is saved, and the exit code says how it ended."""

import signal
import subprocess
import sys

import pytest
from small_texts import LINES

from nextword.runs import saved


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGUSR1, 0)])
def test_signal_saves_what_was_learnt(tmp_path, number, code):
    (tmp_path / "t.txt").write_text(LINES * 200)
    command = [
        sys.executable, "-m", "nextword", "train", "t.txt", "--model", "rnn", "--tokenizer", "words",
        "--set", "train.steps=100000", "--set", "train.valid_every=5", "--set", "model.hidden=16",
        "--out", "r",
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if line.startswith("step"):
                process.send_signal(number)
                break
        rest = process.stderr.read()
        assert process.wait() == code, rest
    assert f"stopped by {signal.Signals(number).name} after step" in rest
    made = saved.load(tmp_path / "r", verify=True)
    assert made.facts.training["stopped"] == signal.Signals(number).name
    assert 0 < made.facts.training["steps"] < 100000

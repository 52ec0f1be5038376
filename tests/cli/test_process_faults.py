"""Faults that need a process of its own: a second signal, a second trainer, memory that is not there."""

import json
import subprocess
import sys

import pytest
from places import SUPPORT

SCRIPT = SUPPORT / "disturbing.py"


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path_factory.mktemp("scenes")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_second_signal_leaves_at_once_and_the_training_can_be_gone_on_with(scenes):
    """6."""
    found = scenes["two_signals"]
    assert found["code"] == 128 + 15
    assert found["damaged"] == []
    assert found["again"] == 0
    assert "resuming after step" in found["log"]
    assert found["weights"] == scenes["expected"]


def test_second_trainer_is_refused_and_the_first_one_notices_nothing(scenes):
    """24; and a process that stood still for a while goes on."""
    found = scenes["two_trainers"]
    assert (found["resumed"], found["overwritten"], found["code"]) == (1, 1, 0)
    assert found["log"].count("is being written by another process") == 2
    assert found["weights"] == scenes["expected"]


def test_memory_that_is_not_there_is_one_sentence(scenes):
    """12."""
    found = scenes["no_memory"]
    assert found["code"] == 1
    assert "out of memory while trying to" in found["log"]
    assert "model.hidden" in found["log"]
    assert "Traceback" not in found["log"]
    assert found["left"] == []

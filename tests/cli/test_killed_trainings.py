"""SIGKILL at any moment of learning and saving: --resume always goes on, to the very same weights."""

import json
import os
import subprocess
import sys

import pytest
from places import SUPPORT

KILLING = SUPPORT / "killing.py"


def kill(folder, kills, seed, model):
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, KILLING, folder, str(kills), str(seed), model], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kills"] == kills
    assert found["hashes"] == [found["expected"]]
    assert found["rest"] == []
    return found


def test_ten_kills_each_of_a_recurrent_model_and_a_transformer_change_nothing(tmp_path):
    found = [kill(tmp_path / model, 10, 1, model) for model in ("lstm", "transformer")]
    assert sum(each["with_checkpoint"] for each in found) > 5


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tag:lstm", "classify:lstm"])
def test_kills_of_a_tagger_and_a_classifier_change_nothing(tmp_path, model):
    kill(tmp_path / "kills", 5, 1, model)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["rnn", "lstm", "mingru", "transformer"])
def test_many_kills_change_nothing(tmp_path, model):
    """``make kills`` sets the number: 200 in all."""
    kill(tmp_path / model, int(os.environ.get("NEXTWORD_KILLS", "40")) // 4, 2, model)

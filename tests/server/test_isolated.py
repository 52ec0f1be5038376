"""A server needs no network but loopback, and no file that it can write."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from served import TEXT

import nextword

SCRIPT = Path(__file__).parents[1] / "support" / "isolated.py"
ALONE = ["unshare", "--map-root-user", "--net", "--mount"]
SMALL = {"model.hidden": 16, "train.steps": 2, "train.precision": "fp32", "train.threads": 1}


@pytest.fixture
def runs(tmp_path):
    """A count model and a network."""
    (text := tmp_path / "t.txt").write_text(TEXT)
    nextword.train(text, model="ngram", out=tmp_path / "counts", set={"model.order": 3})
    nextword.train(text, model="lstm", tokenizer="words", out=tmp_path / "lstm", set=SMALL)
    return [tmp_path / "counts", tmp_path / "lstm"]


def test_server_answers_without_a_network_and_with_every_disk_read_only(runs):
    try:
        allowed = subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("namespaces of one's own are not allowed here (unshare)")
    done = subprocess.run(
        [*ALONE, sys.executable, str(SCRIPT), *map(str, runs)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if not found["read only"]:
        pytest.skip("disks cannot be made read-only here (mount)")
    written = [nextword.load(run).generate("the cat", max_tokens=8, seed=1) for run in runs]
    texts = [text.removeprefix("the cat") for text in written]
    assert found == {"read only": True, "texts": texts, "exit": 0}
    assert "Traceback" not in done.stderr

"""Runs that an earlier version wrote still open, and interrupted ones resume.

``earlier.zip`` holds a tiny finished run of every family and an interrupted one of every network, as version
0.1 wrote them before the folders were rearranged; ``nll.json`` is what that version measured.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

import nextword

ARCHIVE = Path(__file__).with_name("earlier.zip")
NETWORKS = ("window", "rnn", "lstm", "gru", "gru-torch", "mingru", "transformer")
FAMILIES = (*NETWORKS, "ngram", "unbounded", "mixture")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("earlier")
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.parametrize("family", FAMILIES)
def test_finished_run_opens_and_scores_as_it_did(earlier, family):
    run = nextword.load(earlier / "runs" / f"{family}-finished")
    nll = json.loads((earlier / "nll.json").read_text())[family]
    assert run.evaluate(earlier / "text.txt").nll == pytest.approx(nll, abs=1e-4)


@pytest.mark.parametrize("family", NETWORKS)
def test_interrupted_run_resumes_and_ends(earlier, family, tmp_path, monkeypatch):
    shutil.copy(earlier / "text.txt", tmp_path)
    shutil.copytree(earlier / "runs" / f"{family}-interrupted", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    run = nextword.train("text.txt", out="run", resume=True)
    facts = json.loads((tmp_path / "run" / "training.json").read_text())
    assert facts["training"]["steps"] == 10
    assert run.evaluate("text.txt").nll < 3.5

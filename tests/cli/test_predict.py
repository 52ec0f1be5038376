"""``nextword predict``: one line per line of input, by the task of the run."""

import json
from pathlib import Path

import pytest

import nextword
from nextword.cli import main

LINES = "".join(f"{'ab' * (n % 5 + 1)}c\tearly\n{'xyz' * (n % 4 + 1)}w\tlate\n" for n in range(60))


@pytest.fixture
def sorter(outside, tmp_path, monkeypatch):
    """A run of the task that another package registers."""
    monkeypatch.chdir(tmp_path)
    Path("lines.tsv").write_text(LINES)
    nextword.train("lines.tsv", model="letter-counts", out="run")
    return "run"


def test_lines_of_a_file_get_one_line_each_in_order(sorter, capsys):
    Path("new.txt").write_text("abab\nzyx\r\nab")
    assert main.run(["predict", sorter, "new.txt"]) == 0
    assert capsys.readouterr().out == "early\nlate\nearly\n"


def test_json_prints_one_object_a_line(sorter, capsys):
    Path("new.txt").write_text("abab\nzyx\n")
    assert main.run(["predict", sorter, "new.txt", "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"label": "early"}, {"label": "late"},
    ]  # fmt: skip


def test_python_has_the_same_verb(sorter):
    assert [found.text for found in nextword.predict(sorter, ["abab", "zyx"])] == ["early", "late"]
    assert nextword.load(sorter).predict("abab")[0].values == {"label": "early"}


def test_a_language_model_has_nothing_to_predict(tmp_path, capsys):
    (tmp_path / "t.txt").write_text("the cat sat\n" * 20)
    nextword.train(tmp_path / "t.txt", model="ngram", out=tmp_path / "run")
    assert main.run(["predict", str(tmp_path / "run"), str(tmp_path / "t.txt")]) == 1
    assert "continue a text with: nextword generate" in capsys.readouterr().err

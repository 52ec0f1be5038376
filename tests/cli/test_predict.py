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


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    """A tagger after one step."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "a.conll").write_text("She\tPRON\nsells\tVERB\nsea\tNOUN\nshells\tNOUN\n.\tPUNCT\n\n" * 30)
    small = {"train.steps": 1, "model.hidden": 8, "model.embedding": 8, "model.spelling_width": 8}
    nextword.train(folder / "a.conll", task="tag", model="window", set=small, out=folder / "run")
    return str(folder / "run")


def test_a_tagger_reads_raw_text_and_words(tagger, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("new.txt").write_text("She sells sea shells .\nShe doesn't.\n")
    assert main.run(["predict", tagger, "new.txt", "--json"]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [each["text"] for each in first["tokens"]] == ["She", "sells", "sea", "shells", "."]
    assert [each["text"] for each in second["tokens"]] == ["She", "does", "n't", "."]
    assert main.run(["predict", tagger, "new.txt", "--format", "jsonl", "--pretokenized"]) == 0
    second = json.loads(capsys.readouterr().out.splitlines()[1])
    assert [each["text"] for each in second["tokens"]] == ["She", "doesn't."]
    (found,) = nextword.predict(tagger, "She doesn't", pretokenized=True)
    assert found.values["tokens"][1]["text"] == "doesn't"


def test_the_output_file_is_written_whole_or_not_at_all(tagger, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("new.txt").write_text("She sells\n")
    assert main.run(["predict", tagger, "new.txt", "--format", "html", "-o", "out.html"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "written: out.html" in captured.err
    page = Path("out.html").read_text()
    assert page.endswith("</body></html>\n")
    Path("bad.conll").write_text("She\tX\n\nsells\n")
    assert main.run(["predict", tagger, "bad.conll", "-o", "out.html"]) == 1
    assert "bad.conll:3: expected 2 columns as in line 1, found 1" in capsys.readouterr().err
    assert Path("out.html").read_text() == page
    assert sorted(path.name for path in Path().iterdir()) == ["bad.conll", "new.txt", "out.html"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "xml"], "'--format' is 'xml', and a tagger writes one of: conll, jsonl, html"),
        (["--json", "--format", "html"], "'--json' is --format jsonl, and '--format' is html; leave one"),
    ],
)
def test_formats_that_do_not_exist_are_refused(options, message, tagger, tmp_path, capsys):
    (tmp_path / "new.txt").write_text("She sells\n")
    assert main.run(["predict", tagger, str(tmp_path / "new.txt"), *options]) == 1
    assert message in capsys.readouterr().err


def test_a_task_without_words_refuses_pretokenized(sorter, capsys):
    Path("new.txt").write_text("abab\n")
    assert main.run(["predict", sorter, "new.txt", "--pretokenized"]) == 1
    assert "'--pretokenized' is for runs that split text into words" in capsys.readouterr().err
    assert main.run(["predict", sorter, "new.txt", "--format", "conll"]) == 1
    assert "writes one of: text, jsonl" in capsys.readouterr().err

"""Bad tagged and labelled files, as a table: one sentence with file and line, code 1, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

import nextword
from nextword.cli import main

ROW = "{}\t{}\t_\t{}\tX\t_\t0\t_\t_\t_\n"
NESTED = "[" * 100_000

# name of the file, what it holds, what the error says
TAGGED = [
    ("a.conll", "Ann\tN\nsees\tV\tx\n", "a.conll:2: expected 2 columns as in line 1, found 3"),
    ("a.conll", "Ann x N\nsees V\n", "a.conll:2: expected 3 columns as in line 1, found 2"),
    ("a.conll", "Ann\tN\nsees V\n", "a.conll:2: expected 2 columns as in line 1, found 1; columns must be"),
    (
        "a.conllu",
        "1 Ann _ N _ _ _ _ _ _\n",
        "a.conllu:1: expected 10 columns as in CoNLL-U, found 1; columns",
    ),
    ("a.conllu", "1\tAnn\t_\tN\n", "a.conllu:1: expected 10 columns as in CoNLL-U, found 4"),
    ("a.conll", "Ann\n", "a.conll:1: a line must have a word and a tag"),
    ("a.conll", "Ann\tN\n\t\tV\n", "a.conll:2: expected 2 columns as in line 1, found 3"),
    ("a.conll", " \tN\nAnn\tV\n", "a.conll:1: the word is empty"),
    ("a.conll", "Ann\tN\nsees\t \n", "a.conll:2: the word 'sees' has no tag"),
    ("a.conll", "\n\n", "the file is blank"),
    ("a.conll", "", "a.conll: the file is empty"),
    ("a.conll", "-DOCSTART- O\n\n", "a.conll: there is no sentence in this file"),
    ("a.conll", "Ann\tB-x\nsees\tO\n\nin\tO\nRome\tB\n", "a.conll:5: the tag 'B' is neither O nor a prefix"),
    ("a.conll", "Ann\tQ-x\nsees\tO\nBob\tB-x\n", "a.conll:1: the tag 'Q-x' is neither O nor a prefix"),
    ("a.conll", "Ann\tB-\nsees\tO\nBob\tB-x\n", "a.conll:1: the tag 'B-' is neither O nor a prefix"),
    (
        "a.conll",
        "a\tB-x\nb\tL-x\nc\tO\nd\tS-x\n",
        "a.conll:4: the tags mix the prefixes B, L, S, which belong",
    ),
    ("a.conll", "Ann\tN\nBob\tN\n", "a.conll: every word has the tag 'N', so there is nothing to learn"),
    (
        "a.conll",
        "".join(f"a\tt{n}\n" for n in range(2100)),
        "a.conll: there are 2,100 different tags on 2,100 words, which looks like the wrong column",
    ),
    ("a.jsonl", '{"tokens": ["a", "b"], "tags": ["N"]}\n', "a.jsonl:1: there are 2 tokens but 1 tags"),
    ("a.jsonl", '\n{"tokens": ["a"]}\n', "a.jsonl:2: 'tokens' and 'tags' must be lists of strings"),
    (
        "a.jsonl",
        '{"tokens": ["a", ""], "tags": ["N", "V"]}\n',
        "a.jsonl:1: every token and every tag must be",
    ),
    ("a.jsonl", '{"tokens": [1], "tags": ["N"]}\n', "a.jsonl:1: every token and every tag must be a string"),
    ("a.jsonl", '{"words": []}\n', 'a.jsonl:1: a line must be {"tokens": […], "tags": […]}'),
    ("a.jsonl", '{"tokens": [], "tags": []}\n', "a.jsonl: there is no sentence in this file"),
    ("a.jsonl", '{"tokens": ["a"], "tags": ["N"]}\n' * 16 + "{\n", "a.jsonl:17:2: this line is not JSON ("),
    ("a.jsonl", '{"tokens": NaN}\n', "a.jsonl:1: this line is not JSON (NaN is not JSON)"),
    ("a.jsonl", '{"tokens": 1e999}\n', "a.jsonl:1: this line is not JSON (the number 1e999 is too large)"),
    ("a.jsonl", '{"tags": [], "tags": []}\n', "a.jsonl:1: this line is not JSON (duplicate key 'tags')"),
    ("a.jsonl", NESTED + "\n", "a.jsonl:1: this line is not JSON (it is nested too deeply)"),
]

LABELLED = [
    ("a.tsv", "a film\tgood\nthe plot\n", "a.tsv:2: expected 2 columns as in the first line, found 1"),
    ("a.tsv", "a film\nthe plot\n", "a.tsv:1: a line must have a text and a label"),
    (
        "a.tsv",
        "a film\tgood\nthe plot\tgood\n",
        "a.tsv: all texts have the label 'good', so there is nothing",
    ),
    ("a.tsv", "a film\tgood\nthe plot\t\na book\tgood\nthe end\tgood\n", "a.tsv:2: the text has no label"),
    ("a.csv", 'text,label\n"a film,good\nb,bad\n', "a.csv:2: the table cannot be read here ("),
    ("a.csv", 'text,label\na,b\n"a" film,good\n', "a.csv:3: the table cannot be read here ("),
    ("a.csv", "text,label\n", "a.csv:1: the table has a header line but no rows"),
    ("a.csv", "id,text,when\n1,a,2\n", "a.csv:1: which of the 3 columns is the text?"),
    ("a.tsv", "1\ta film\tgood\n2\ta plot\tbad\n", "a.tsv:1: which of the 3 columns is the text?"),
    ("a.jsonl", '{"text": "a", "label": "x"}\n' * 16 + '{"text":\n', "a.jsonl:17:9: this line is not JSON ("),
    ("a.jsonl", '{"text": "a", "label": NaN}\n', "a.jsonl:1: this line is not JSON (NaN is not JSON)"),
    ("a.jsonl", '{"text": "a", "label": -1e999}\n', "this line is not JSON (the number -1e999 is too large)"),
    ("a.jsonl", '{"text": "a", "text": "b"}\n', "a.jsonl:1: this line is not JSON (duplicate key 'text')"),
    ("a.jsonl", NESTED + "\n", "a.jsonl:1: this line is not JSON (it is nested too deeply)"),
    ("a.jsonl", '["a", "x"]\n', "a.jsonl:1: a line must be a JSON object with a text and a label"),
    ("a.jsonl", '{"text": "a"}\n', "a.jsonl:1: there is no column 'label'"),
    (
        "a.jsonl",
        '{"text": "a", "label": null}\n{"text": "b", "label": "x"}\n',
        "a.jsonl:1: the text has no label",
    ),
    ("a.txt", "__label__x a film\na plot\n", "a.txt:2: the line has no label; a line must be: __label__NAME"),
    (
        "a.tsv",
        "".join(f"film\ta story of its own {n}\n" for n in range(50)),
        "a.tsv: all texts have the label 'film'",
    ),
    (
        "a.csv",
        "text,label\n" + "".join(f"good,a film of its own {n}\n" for n in range(50)),
        "a.csv: there are 50 different labels of 50 texts, which looks like the wrong column",
    ),
]


def refused(arguments, message, capsys):
    before = sorted(Path().iterdir())
    assert main.run(arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize(("name", "text", "message"), TAGGED)
def test_bad_tags(name, text, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    refused(["train", name, "--task", "tag", "--model", "window", "--out", "run"], message, capsys)


@pytest.mark.parametrize(("name", "text", "message"), LABELLED)
def test_bad_labels(name, text, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    refused(["train", name, "--task", "classify", "--model", "window", "--out", "run"], message, capsys)


def test_strict_tags_name_the_line_of_the_word(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = "# text\n1-2\tcannot" + "\t_" * 8 + "\n" + ROW.format(1, "can", "O") + ROW.format(2, "Rome", "I-x")
    Path("a.conllu").write_text(rows + "\n" + ROW.format(1, "Rome", "B-x"))
    strict = ["--set", "data.bio=strict"]
    train = ["train", "a.conllu", "--task", "tag", "--model", "window", "--out", "run", *strict]
    refused(train, "a.conllu:4: the tag 'I-x' of 'Rome' may not stand there in BIO", capsys)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A tagger and a classifier after one step."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "a.conllu").write_text((ROW.format(1, "Ann", "N") + ROW.format(2, "sees", "V") + "\n") * 30)
    (folder / "a.tsv").write_text("a good film\tgood\na bad film\tbad\n" * 30)
    small = {"train.steps": 1, "model.hidden": 8, "model.embedding": 8, "model.spelling_width": 8}
    nextword.train(folder / "a.conllu", task="tag", model="window", set=small, out=folder / "tagger")
    nextword.train(folder / "a.tsv", task="classify", model="window", set=small, out=folder / "classifier")
    return folder


EVAL = [
    ("tagger", "b.conll", "She sells sea shells .\n", "b.conll:1: none of the tags here ('.', …) was seen"),
    ("tagger", "b.txt", "She sells sea shells .\nShe sells\n", "b.txt:2: expected 5 columns as in line 1"),
    ("tagger", "b.conll", "She\nsells\n", "b.conll:1: a line must have a word and a tag"),
    ("classifier", "b.tsv", "a film\nthe plot\n", "b.tsv:1: a line must have a text and a label"),
    ("classifier", "b.tsv", "a film\tgreat\nthe plot\tpoor\n", "b.tsv:1: none of the labels here ('great'"),
    ("classifier", "b.csv", "text,label\na film,good\nthe plot,\n", "b.csv:3: the text has no label"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "name", "text", "message"), EVAL)
def test_eval_of_files_without_labels(run, name, text, message, trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    refused(["eval", str(trained / run), name], message, capsys)


def test_tags_and_labels_that_training_has_not_seen_are_errors_and_listed(trained, tmp_path):
    (tmp_path / "b.conllu").write_text(ROW.format(1, "Ann", "X") + ROW.format(2, "sees", "V"))
    report = nextword.evaluate(trained / "tagger", tmp_path / "b.conllu")
    assert report.new_tags == ("X",)
    assert report.accuracy <= 0.5
    assert "counted as errors: X" in str(report)
    (tmp_path / "b.tsv").write_text("a good film\tgood\na film\tmixed\n")
    report = nextword.evaluate(trained / "classifier", tmp_path / "b.tsv")
    assert report.new_labels == ("mixed",)
    assert report.accuracy <= 0.5


def test_ranges_empty_nodes_comments_and_documents_are_no_words(trained, tmp_path):
    rows = "# text = Ann sees\n1-2\tAnnsees" + "\t_" * 8 + "\n" + ROW.format(1, "Ann", "N")
    rows += "1.1\tnot" + "\t_" * 8 + "\n" + ROW.format(2, "sees", "V")
    (tmp_path / "b.conllu").write_text(rows)
    assert nextword.evaluate(trained / "tagger", tmp_path / "b.conllu").words == 2
    (tmp_path / "b.conll").write_text("-DOCSTART- -X- O O\n\nAnn\tN\nsees\tV\n\n-DOCSTART-\n\n\nAnn\tN\n")
    report = nextword.evaluate(trained / "tagger", tmp_path / "b.conll")
    assert (report.words, report.sentences) == (3, 2)


@pytest.mark.parametrize("run", ["tagger", "classifier"])
@pytest.mark.parametrize(
    "verb",
    [["score", "{}", "a.tsv"], ["generate", "{}"], ["next", "{}", "a film"], ["filter", "{}", "a.tsv"]],
)
def test_verbs_of_language_models_refuse_other_runs(verb, run, trained, monkeypatch, capsys):
    monkeypatch.chdir(trained)
    refused(
        [each.format(run) for each in verb], f"'{run}' is a {run}, and this needs a language model", capsys
    )

"""Taggers and classifiers side by side, ranked by the measure that their data calls for."""

from pathlib import Path

import pytest
from labelled_texts import labelled_texts, several_labels, tagged_sentences

import nextword
from nextword.cli import main
from nextword.comparison.entries import entries
from nextword.core.errors import ConfigError

SMALL = {
    "model.hidden": 8, "model.embedding": 8, "model.spelling_width": 8, "train.threads": 1,
    "train.steps": 20, "train.batch": 8,
}  # fmt: skip
PARTS = "Ann\tPROPN\nruns\tVERB\n\nBob\tPROPN\nlikes\tVERB\nrain\tNOUN\n\n" * 12


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("task", "name", "text", "decides"),
    [
        ("tag", "a.conll", tagged_sentences(), "span_f1"),
        ("tag", "a.conll", PARTS, "accuracy"),
        ("classify", "a.tsv", labelled_texts(), "accuracy"),
        ("classify", "a.tsv", several_labels(), "micro_f1"),
    ],
    ids=["spans", "parts-of-speech", "one-label", "several-labels"],
)
def test_models_are_ranked_by_what_fits_their_data(task, name, text, decides):
    Path(name).write_text(text)
    found = nextword.compare(name, task=task, models="window,lstm", seeds=2, set=SMALL, out="c")
    assert found.to_json()["decides"] == decides
    head = str(found).splitlines()[0]
    assert head.startswith("model")
    assert head[5:].strip().lower().startswith(decides.replace("_", " "))
    assert decides in found.to_json()["models"][0]
    assert {row.model for row in found.rows} == {"window", "lstm"}
    assert len(found.rows) == 4
    costs = [row.cost for row in found.rows]
    assert costs == sorted(costs)
    page = Path("c/report.html").read_text()
    assert {"tag": "Taggers side by side", "classify": "Classifiers side by side"}[task] in page
    assert "The same examples" in page


@pytest.mark.parametrize(
    ("task", "name", "make"), [("tag", "a.conll", tagged_sentences), ("classify", "a.tsv", labelled_texts)]
)
def test_the_measures_are_those_of_eval(task, name, make):
    Path(name).write_text(make())
    Path("new." + name).write_text(make(30, seed=5))
    found = nextword.compare(name, task=task, models="window", valid="new." + name, set=SMALL, out="c")
    report = nextword.load("c/window").evaluate("new." + name).to_json()
    values = found.rows[0].values
    assert values["accuracy"] == report["accuracy"]
    if task == "tag":
        assert values["span_f1"] == report["span_f1"]
    assert "measured on 30 of new." in found.about


def word(number):
    """Return a word of letters for a number."""
    return "w" + "".join("abcdefghij"[int(digit)] for digit in str(number))


def test_nothing_that_is_measured_is_learned_from():
    Path("a.tsv").write_text("".join(f"{word(at)} and more\t{'ab'[at % 2]}\n" for at in range(100)))
    nextword.compare("a.tsv", task="classify", models="window", set=SMALL, out="c")
    known = nextword.load("c/window").trained.vocabulary.lexicon
    seen = [at for at in range(100) if known.is_known(word(at))]
    assert 0 < len(seen) <= 80


def test_models_of_the_task_are_taken_and_others_suggested():
    found = entries((), (), 1, {}, None, "tag")
    assert {entry.settings.task for entry in found} == {"tag"}
    assert {"lstm", "window", "transformer"} <= {entry.name for entry in found}
    with pytest.raises(ConfigError, match="unknown model 'lstn'; did you mean 'lstm'"):
        entries(("lstn",), (), 1, {}, None, "classify")


def test_too_few_examples_say_what_to_do(capsys):
    Path("a.tsv").write_text("good\tx\nbad\ty\n")
    assert main.run(["compare", "a.tsv", "--task", "classify", "--models", "window"]) == 1
    assert (
        "there are only 2 texts, too few to hold some out; give more with --valid" in capsys.readouterr().err
    )


def test_tokenizer_is_for_language_models(capsys):
    Path("a.tsv").write_text(labelled_texts())
    assert main.run(["compare", "a.tsv", "--task", "classify", "--tokenizer", "words"]) == 1
    assert "--tokenizer is for language models" in capsys.readouterr().err

"""Models of a task that another package registers are compared like our own."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import nextword
from nextword.cli import main
from nextword.core.errors import ConfigError

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("outside")

NAMES = ("letter-counts", "letter-sums")
SMALL = ["--set", "train.steps=12", "--set", "train.batch=16", "--set", "train.threads=1"]


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """Lines of two classes that differ in how often letters occur, not in which; some are hard to tell."""
    rng = random.Random(4)
    made = []
    for _ in range(160):
        label = rng.choice(["early", "late"])
        weights = [4, 3, 2, 1] if label == "early" else [1, 2, 3, 4]
        made.append("".join(rng.choices("abxy", weights, k=5)) + f"\t{label}\n")
    path = tmp_path_factory.mktemp("lines") / "lines.tsv"
    path.write_text("".join(made))
    return path


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *args):
    code = main.run(["compare", *map(str, args)])
    return code, *capsys.readouterr()


def test_a_task_from_outside_is_compared_and_resumes(lines, here, capsys):
    asked = (lines, "--task", "sort", "--models", ",".join(NAMES), "--seeds", "3", "--out", "c", *SMALL)
    code, out, err = run(capsys, *asked)
    assert code == 0, err
    head, *rows = out.splitlines()
    assert head.split()[:3] == ["model", "accuracy", "lines"]
    assert {row.split()[0] for row in rows[:2]} == set(NAMES)
    assert "the best" in out
    assert "±" in out
    assert "95 % interval" in out
    assert "next: nextword predict c/" in err
    page = Path("c/report.html").read_text()
    for part in ("Sorters side by side", "How they learn", "accuracy of the examples for choices",
                 "The same examples", "detectable", "over 3 seeds"):  # fmt: skip
        assert part in page
    assert "<script" not in page
    code, out, err = run(capsys, *asked, "--json")
    assert err.count("is already finished") == 4  # one of counts, three seeds of the network
    values = json.loads(out)
    assert (values["task"], values["decides"]) == ("sort", "accuracy")
    best, other = values["models"]
    assert best["accuracy"] >= other["accuracy"]
    assert other["test"]["behind"] == pytest.approx(best["accuracy"] - other["accuracy"])
    assert other["test"]["low"] <= other["test"]["behind"] <= other["test"]["high"]
    assert other["test"]["detectable"] > 0
    assert {len(each["seeds"]) for each in values["models"]} == {0, 3}


def test_the_new_examples_are_what_decides(lines, here):
    found = nextword.compare(lines, models=NAMES, out="c", set={"train.steps": 12, "train.threads": 1})
    assert found.about == "trained on 120 lines, measured on 40"
    for row in found.rows:
        (here / "held.tsv").write_text("".join(lines.read_text().splitlines(keepends=True)[120:]))
        assert nextword.load(f"c/{row.run}").evaluate("held.tsv").accuracy == row.values["accuracy"]
        assert -sum(row.blocks) == pytest.approx(40 * row.values["accuracy"])
    (sums,) = (row for row in found.rows if row.model == "letter-sums")
    assert sums.curve
    assert all(0 <= value <= 1 for _, _, value in sums.curve)
    network = next(each for each in found.models if each.name == "letter-sums")
    assert network.p is None or network.is_best  # one seed: no verdict
    assert "one seed only of letter-sums" in str(found)


def test_without_names_every_family_of_the_task_is_compared(lines, here):
    found = nextword.compare(lines, task="sort", out="c", set={"train.steps": 3, "train.threads": 1})
    assert {each.name for each in found.models} == set(NAMES)


def test_all_seeds_have_one_plan(lines, here):
    found = nextword.compare(
        lines, models=["letter-sums"], minutes=1.0, seeds=2, out="c", set={"train.steps": 4}
    )
    first, second = found.rows
    assert first.plan == second.plan
    assert first.plan["letter-sums"]["settings"]
    assert "planned once for its 2 seeds" in str(found)


def test_other_examples_are_trained_on_again(lines, here, capsys):
    asked = ("--models", "letter-counts", "--out", "c")
    assert run(capsys, lines, *asked)[0] == 0
    (here / "other.tsv").write_text(lines.read_text().replace("early", "soon"))
    code, _, err = run(capsys, "other.tsv", *asked)
    assert code == 0
    assert "already finished" not in err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"models": ["letter-counts", "ngram"]}, "'ngram' is a model for the task 'lm'"),
        ({"models": ["letter-counts"], "tokenizer": "words"}, "tokenizer'? is for language models"),
        ({"models": ["letter-counts"], "minutes": 0}, "'minutes' is 0"),
        ({"models": ["letter-counts"], "set": {"model.ad": 1}}, "did you mean 'model.add'"),
        ({"task": "sorting"}, "unknown task 'sorting'"),
    ],
)
def test_mistakes_are_one_sentence(lines, here, more, told):
    with pytest.raises(ConfigError, match=told):
        nextword.compare(lines, **more)


def test_a_task_that_divides_nothing_says_so(lines, here, monkeypatch):
    import sorting

    monkeypatch.delattr(sorting.Sorting, "divide")
    with pytest.raises(ConfigError, match="the task 'sort' does not say how its examples are divided"):
        nextword.compare(lines, models=NAMES)

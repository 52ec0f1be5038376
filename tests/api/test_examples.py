"""Every public function and every method of `Run` has an example, and the examples do what they show."""

from __future__ import annotations

import doctest
import inspect

import pytest

import nextword

LINES = [
    "the cat sat on the mat",
    "the cat sat on the rug",
    "a dog ran to the door",
    "the dog sat on the mat",
] * 10
CLASSES = {"Next", "NextwordError", "Run", "Score", "Text", "Token"}
FUNCTIONS = sorted(set(nextword._PUBLIC) - CLASSES)
METHODS = sorted(
    name for name, _ in inspect.getmembers(nextword.Run, inspect.isfunction) if not name.startswith("_")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a text, a test text, two saved runs and an n-best list."""
    path = tmp_path_factory.mktemp("examples")
    (path / "corpus.txt").write_text("".join(line + "\n" for line in LINES))
    (path / "test.txt").write_text("the cat sat on the door\na dog sat on the mat\n")
    (path / "nbest.tsv").write_text("1\t-1\tmat the on cat the sat\n1\t-2\tthe cat sat on the mat\n")
    for name, order in (("tiny", 3), ("short", 2)):
        nextword.train(
            path / "corpus.txt", model="ngram", set={"model.order": order}, out=path / "runs" / name
        )
    return path


def check(found, folder, monkeypatch):
    monkeypatch.chdir(folder)
    example = doctest.DocTestParser().get_doctest(
        inspect.getdoc(found),
        {"nextword": nextword, "run": nextword.load("runs/tiny")},
        found.__name__,
        None,
        0,
    )
    assert example.examples, "the docstring has no example"
    shown = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(example, out=shown.append).failed == 0, "".join(shown)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_example_of_a_function(name, folder, monkeypatch):
    check(getattr(nextword, name), folder, monkeypatch)


@pytest.mark.parametrize("name", METHODS)
def test_example_of_a_method(name, folder, monkeypatch):
    check(getattr(nextword.Run, name), folder, monkeypatch)

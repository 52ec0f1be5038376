"""States of language models as features of words."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from labelled_texts import labelled_texts, tagged_sentences

import nextword
from nextword.cli import main
from nextword.core.errors import NextwordError
from nextword.tasks.word_states import Reader

SMALL = {
    "model.hidden": 8,
    "model.embedding": 8,
    "model.layers": 1,
    "train.steps": 2,
    "train.precision": "fp32",
}
TEXT = "Ann sees Rome .\nBob visits New York .\nCarl leaves Oslo .\n" * 8


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train a forward and a backward language model."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "text.txt").write_text(TEXT)
    (folder / "train.conll").write_text(tagged_sentences())
    for name, tokenizer, direction in (("ahead", "characters", "forward"), ("back", "words", "backward")):
        sets = SMALL | {"data.direction": direction}
        nextword.train(folder / "text.txt", model="lstm", tokenizer=tokenizer, set=sets, out=folder / name)
    return folder


@pytest.fixture
def runs(trained, tmp_path, monkeypatch):
    """Work in a folder that has them."""
    shutil.copytree(trained, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")


def _reader(name):
    run = nextword.load(name)
    return Reader(run.model, run.tokenizer)


def test_a_forward_model_has_read_the_word_and_a_backward_one_what_follows(runs):
    ahead, back = _reader("ahead"), _reader("back")
    words = ["Ann", "sees", "Rome", "."]
    ids, ends = ahead.tokens(words)
    assert ahead.tokenizer.decode(ids) == "Ann sees Rome ."
    assert [ahead.tokenizer.decode(ids[: end + 1]) for end in ends] == [
        "Ann", "Ann sees", "Ann sees Rome", "Ann sees Rome .",
    ]  # fmt: skip
    ids, ends = back.tokens(words)
    assert [back.tokenizer.decode(ids[: end + 1]) for end in ends] == [
        "Ann sees Rome .", "sees Rome .", "Rome .", ".",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["ahead", "back"])
def test_states_depend_on_their_side_of_the_sentence_only(name, runs):
    reader = _reader(name)
    one, two, three = reader.states(
        [["Ann", "sees", "Rome"], ["Bob", "sees", "Rome"], ["Ann", "sees", "Oslo", "."]]
    )
    same_left, same_right = (np.allclose(one[1], each[1], atol=2e-3) for each in (three, two))
    assert (same_left, same_right) == ((True, False) if name == "ahead" else (False, True))
    assert one.shape == (3, reader.width)


def test_a_tagger_reads_the_states_of_both_and_checks_that_they_are_the_same(runs, capsys):
    run = nextword.train(
        "train.conll", task="tag", set=SMALL | {"model.features": "ahead,back"}, out="tagger"
    )
    assert run.trained.vocabulary.states == 16
    before = run.predict(["Ann visits New York ."])[0].values["tokens"]
    again = nextword.load("tagger")
    assert again.predict(["Ann visits New York ."])[0].values["tokens"] == before
    assert again.evaluate("train.conll").words > 0
    other = Path("elsewhere")
    other.mkdir()
    for name in ("ahead", "back", "tagger"):
        Path(name).rename(other / name)
    moved = nextword.load(other / "tagger")  # the runs are looked for beside it, too
    assert moved.predict(["Ann visits New York ."])[0].values["tokens"] == before
    (other / "back").rename(other / "gone")
    with pytest.raises(
        NextwordError, match="back' are features of this model, and that run cannot be opened"
    ):
        nextword.load(other / "tagger")
    sets = SMALL | {"data.direction": "backward", "train.seed": 5}
    nextword.train("text.txt", model="lstm", tokenizer="words", set=sets, out=other / "back")
    with pytest.raises(NextwordError, match="is not the run it was trained with"):
        nextword.load(other / "tagger")


def test_a_classifier_reads_them_too(runs):
    Path("texts.tsv").write_text(labelled_texts())
    run = nextword.train("texts.tsv", task="classify", set=SMALL | {"model.features": "ahead"})
    run.save("classifier")
    assert nextword.load("classifier").trained.vocabulary.states == 8


def test_only_a_neural_language_model_has_states(runs, capsys):
    nextword.train("text.txt", model="ngram", out="counts")
    for name, message in (("counts", "is not a neural language model"), ("none", "there is no run 'none'")):
        command = ["train", "train.conll", "--task", "tag", "--set", f"model.features={name}", "--out", "t"]
        assert main.run(command) == 1
        assert message in capsys.readouterr().err

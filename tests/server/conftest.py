"""Small runs of several families and a server of them, made once for a process of tests."""

import pytest
from served import TEXT, serving

import nextword

SETS = {
    "lstm": {"model.hidden": 16, "train.steps": 2, "train.precision": "fp32"},
    "transformer": {"model.hidden": 16, "model.heads": 2, "train.steps": 2, "train.precision": "fp32"},
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Folders of an n-gram, an LSTM and a Transformer over subwords, and an n-gram over words."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "t.txt").write_text(TEXT)
    text = str(folder / "t.txt")
    nextword.train(text, model="ngram", out=str(folder / "words"), set={"model.order": 3})
    nextword.train(text, model="ngram", tokenizer="bpe", out=str(folder / "counts"), set={"model.order": 3})
    for name, sets in SETS.items():
        nextword.train(text, model=name, tokenizer="bpe", out=str(folder / name), set=sets)
    return {name: folder / name for name in ("words", "counts", *SETS)}


@pytest.fixture(scope="session")
def site(runs):
    """A server of all of them."""
    with serving(*runs.values()) as found:
        yield found

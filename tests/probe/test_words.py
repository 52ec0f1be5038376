"""Probes of taggers and classifiers: tags and labels layer by layer, units, attention, word vectors."""

from pathlib import Path

import numpy as np
import pytest
from labelled_texts import labelled_texts, tagged_sentences

import nextword
from nextword.core.errors import ConfigError, DataError

SMALL = {"model.hidden": 16, "model.embedding": 16, "model.spelling_width": 16, "train.threads": 1}
TEXTS = {"tag": tagged_sentences(40, seed=2), "classify": labelled_texts(120, seed=2)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return a function that trains a small model once."""
    folder, made = tmp_path_factory.mktemp("runs"), {}
    (folder / "t.conll").write_text(tagged_sentences())
    (folder / "t.tsv").write_text(labelled_texts(160))

    def run(task, model, **sets):
        key = (task, model, *sets)
        if key not in made:
            file = folder / {"tag": "t.conll", "classify": "t.tsv"}[task]
            chosen = (
                SMALL | {"train.steps": 60} | {name.replace("__", "."): value for name, value in sets.items()}
            )
            made[key] = nextword.train(file, task=task, model=model, set=chosen)
        return made[key]

    return run


@pytest.mark.parametrize("task", ["tag", "classify"])
@pytest.mark.parametrize("model", ["lstm", "window", "transformer", "convolution"])
def test_a_linear_probe_reads_the_targets_off_every_layer(runs, task, model):
    found = nextword.inspect(runs(task, model), "linear", TEXTS[task])
    assert found.names["L"][0] == "word vectors"
    assert len(found.names["L"]) > 1
    target = {"tag": "tag", "classify": "label"}[task]
    row = list(found.names["F"]).index(target)
    last, majority = found.arrays["accuracy_FL"][row, -1], found.arrays["majority_F"][row]
    assert last > 0.9 > majority
    assert f"the {target}s of the text" in found.sentence


def test_without_tags_those_of_the_model_are_probed(runs):
    lines = "\n".join("Ann likes Rome ." if at % 2 else "Bob often leaves New York ." for at in range(40))
    assert "the model's own tags" in nextword.inspect(runs("tag", "lstm"), "linear", lines).sentence


@pytest.mark.parametrize("task", ["tag", "classify"])
def test_a_unit_follows_a_tag_or_label(runs, task):
    found = nextword.inspect(runs(task, "lstm"), "units", TEXTS[task])
    assert found.arrays["layer 1"].shape[0] == len(found.names["N"])
    assert " of layer 1 follows '" in found.sentence


def test_the_attention_of_an_encoder_sums_to_one_and_is_the_layers_own(runs):
    found = nextword.inspect(runs("tag", "transformer"), "attention", "Ann often visits New York .")
    weights = found.arrays["weights_LNTS"]
    assert np.allclose(weights.sum(axis=-1), 1)
    assert np.triu(weights[0, 0], 1).sum() > 0  # it looks right, too
    gap = float(found.sentence.split("output by ")[1].split()[0])
    assert gap < 1e-3


def test_the_weights_of_attention_pooling_are_drawn(runs):
    run = runs("classify", "lstm", model__pooling="attention")
    found = nextword.inspect(run, "attention", "the film was lovely")
    assert found.arrays["weights_T"].sum() == pytest.approx(1)
    assert list(found.names["T"]) == ["the", "film", "was", "lovely"]


def test_word_vectors_need_no_text(runs):
    found = nextword.inspect(runs("tag", "window"), "embeddings")
    assert found.arrays["cosine_QK"].max() <= 1
    assert "words have vectors of 16 numbers" in found.sentence


def test_what_does_not_fit_says_what_does(runs):
    run = runs("tag", "lstm")
    with pytest.raises(
        ConfigError, match=r"'surprise' is for .*, and '.*' is a tagger; what fits it: .*linear"
    ):
        nextword.inspect(run, "surprise", "Ann sees Rome .")
    with pytest.raises(ConfigError, match="'attention' is for translation runs, Transformers and attention"):
        nextword.inspect(run, "attention", "Ann sees Rome .")
    with pytest.raises(DataError, match="a tagger generates no text; give some with"):
        nextword.inspect(run, "units")


def test_mistakes_in_a_tagged_text_name_their_line(runs):
    with pytest.raises(DataError, match="expected 2 columns"):
        nextword.inspect(runs("tag", "lstm"), "linear", "Ann\tB-person\nsees\n")


def test_everything_that_fits_is_on_one_page(runs, tmp_path, monkeypatch):
    from nextword.cli import main

    monkeypatch.chdir(tmp_path)
    runs("tag", "transformer").save("run")
    Path("t.conll").write_text(TEXTS["tag"])
    assert main.run(["inspect", "run", "--text", Path("t.conll").read_text(), "--out", "p.html"]) == 0
    page = Path("p.html").read_text()
    for title in ("What a linear probe reads off each layer", "Words as vectors", "What the words look at"):
        assert title in page

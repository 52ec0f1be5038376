"""Other tasks start from runs of text: of every objective, and of rows of the table."""

import pytest
import torch
from event_streams import notes_of, until_done
from small_texts import LINES

import nextword
from nextword.api.train import Order, run
from nextword.models.modifications import TABLE

torch.set_num_threads(1)
PAIRS = "the cat sat\tle chat\nthe dog sat\tle chien\na cat\tun chat\nthe mat\tle tapis\n" * 6
LABELS = "the cat sat\tcat\nthe dog sat\tdog\na cat\tcat\na dog and a log\tdog\n" * 6
TAGS = "the\tDET\ncat\tNOUN\nsat\tVERB\n\na\tDET\ndog\tNOUN\nsat\tVERB\n\n" * 8
SMALL = {
    "model.layers": 2, "model.hidden": 16, "model.heads": 2, "model.context": 16, "train.steps": 2,
    "train.batch": 2, "train.threads": 1, "train.valid_tokens": 40,
}  # fmt: skip
OBJECTIVES = {
    "causal": {}, "masked": {"model.objective": "masked"}, "prefix": {"model.objective": "prefix"},
    "span": {"model.objective": "span"}, "both": {"model.objective": "span", "model.encoder_layers": 1},
}  # fmt: skip
BEGUN = {
    "causal": "the decoder starts", "masked": "the encoder starts", "prefix": "the decoder starts",
    "span": "the decoder starts", "both": "encoder and decoder start",
}  # fmt: skip
ROWS = [each.name for each in TABLE if each.sets is not None]
QUICK = {"train.steps": 2, "train.batch": 2, "train.threads": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    for name, text in (("t.txt", LINES * 40), ("p.tsv", PAIRS), ("l.tsv", LABELS), ("c.conll", TAGS)):
        (path / name).write_text(text)
    return path


def pretrained(folder, name, model="transformer", **sets):
    if not (folder / name).exists():
        nextword.train(folder / "t.txt", model=model, tokenizer="words", set=SMALL | sets, out=folder / name)
    return folder / name


@pytest.mark.parametrize("name", OBJECTIVES)
def test_translation_starts_from_a_run_of_any_objective(name, folder):
    source = pretrained(folder, name, **OBJECTIVES[name])
    order = Order((str(folder / "p.tsv"),), task="translate", source=str(source), sets=QUICK)
    made, events = until_done(run(order, None, keep=False))
    assert any(BEGUN[name] in note for note in notes_of(events))
    theirs = nextword.load(source).model.network
    vectors = made.model.network.embedding.weight_VE.shape
    assert vectors == (theirs.vocab_size, 16)  # without the marks


def test_weights_of_an_encoder_are_those_of_the_masked_run(folder):
    source = pretrained(folder, "masked", **OBJECTIVES["masked"])
    still = QUICK | {"train.rate": 1e-12}
    order = Order((str(folder / "p.tsv"),), task="translate", source=str(source), sets=still)
    made, _ = until_done(run(order, None, keep=False))
    theirs = nextword.load(source).model.network.stack.state_dict()
    ours = made.model.network.reader.encoder.stack.state_dict()
    assert all(torch.allclose(ours[key], tensor, atol=1e-5) for key, tensor in theirs.items())


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize(("task", "file"), [("classify", "l.tsv"), ("tag", "c.conll")])
def test_labels_are_learned_from_what_a_run_knows_at_each_word(task, file, name, folder):
    source = pretrained(folder, name, **OBJECTIVES[name])
    sets = QUICK | {"model.hidden": 8, "model.embedding": 0, "model.spelling": "none"}
    made = nextword.train(folder / file, task=task, model="window", source=source, set=sets)
    assert made.settings.model.features == str(source.resolve())
    assert nextword.predict(made, ["the cat sat"])[0].text


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=() if row in ("swiglu", "synthesizer-random") else pytest.mark.slow)
        for row in ROWS
    ],
)
def test_every_row_of_the_table_begins_a_translation_model(row, folder):
    own = {} if row in ("product-key-memory", "universal-transformer") else {"model.layers": 3}
    sets = {key: value for key, value in SMALL.items() if not key.startswith("model.")}
    source = folder / f"row-{row}"
    nextword.train(
        folder / "t.txt", model=f"narang/{row}", tokenizer="words", out=source,
        set=sets | own | {"model.context": 16},
    )  # fmt: skip
    made = nextword.train(folder / "p.tsv", task="translate", source=source, set=QUICK)
    assert nextword.predict(made, ["the cat"])

"""From a text to a neural run and from that run to another: hold out, learn, save, load, go on."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from event_streams import notes_of
from small_texts import TWO_DOCUMENTS

import nextword
from nextword.core.errors import ConfigError
from nextword.core.events import Done
from nextword.runs.settings import from_toml, plan

SMALL = {
    "model.hidden": 16, "model.layers": 1,
    "train.steps": 6, "train.batch": 4, "train.length": 16, "train.threads": 1,
}  # fmt: skip
TEXT = TWO_DOCUMENTS * 30


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "t.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def run(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "r"
    return nextword.train(text, model="rnn", set=SMALL, out=out, tokenizer="words", seed=3)


def test_neural_run_holds_out_the_end_of_the_text_and_is_read_back(run):
    assert run.facts.data.names[0].endswith("(training part)")
    assert run.facts.data.bytes < len(TEXT)
    assert any("valid_bits_per_byte" in row for row in run.metrics)
    assert run.facts.training["steps"] == 6
    assert run.facts.training["precision"] in ("fp32", "bf16")
    assert run.facts.versions["torch"] == torch.__version__
    report = run.evaluate(text_of(run))
    assert math.isfinite(report.bits_per_byte)
    assert run.generate("the cat", seed=1) == nextword.load(run.path).generate("the cat", seed=1)


def text_of(run):
    return next(name.removesuffix(" (training part)") for name in run.facts.data.names)


def test_configuration_is_complete_and_same_settings_give_the_same_weights(run, text):
    toml = (run.path / "config.toml").read_text()
    settings = from_toml(toml, "config.toml")
    assert settings == run.settings
    assert all(f"\n{name} = " in toml for name in type(settings.train).model_fields)
    again = nextword.train(text, model="rnn", set=SMALL, tokenizer="words", seed=3)
    other = nextword.train(text, model="rnn", set=SMALL, tokenizer="words", seed=4)
    ours, same, different = (each.model.network.state_dict() for each in (run, again, other))
    assert all(torch.equal(ours[name], same[name]) for name in ours)
    assert not all(torch.equal(ours[name], different[name]) for name in ours)


def test_family_defaults_stand_below_what_the_user_says():
    default = plan("lstm").train.rate
    assert default == plan("lstm").find_family().defaults["train.rate"]
    assert plan("lstm", sets={"train.rate": 0.5}).train.rate == 0.5


def test_short_text_is_learnt_without_a_held_out_part(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("just one line of words to learn from")
    events = list(
        nextword.api.train.run(
            nextword.api.train.Order(
                (str(path),), model="rnn", tokenizer="words", sets=SMALL | {"train.length": 3}
            ),
            keep=False,
        )
    )
    assert any("too short to hold out a part of it" in note for note in notes_of(events))
    assert isinstance(events[-1], Done)


def test_going_on_from_a_run_begins_with_its_weights(run, text, tmp_path):
    sets = {key: value for key, value in SMALL.items() if key.startswith("train.")}
    tuned = nextword.train(text, source=str(run.path), set=sets | {"train.steps": 1, "train.rate": 1e-9})
    assert tuned.settings.family == "rnn"
    assert tuned.settings.model.hidden == 16
    before, after = run.model.network.state_dict(), tuned.model.network.state_dict()
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)


def test_new_words_begin_at_the_mean_and_known_ones_are_found_by_their_text(run, tmp_path):
    path = tmp_path / "new.txt"
    path.write_text("the zebra sat on a mat\na cat and a zebra sang\n" * 40)
    sets = {key: value for key, value in SMALL.items() if key.startswith("train.")}
    tuned = nextword.train(
        path, source=str(run.path), tokenizer="words", set=sets | {"train.steps": 1, "train.rate": 1e-9}
    )
    before, after = run.model.network.embedding.weight_VE, tuned.model.network.embedding.weight_VE
    number = {run.tokenizer.piece(i): i for i in range(run.tokenizer.vocab_size)}
    for index in range(3, tuned.tokenizer.vocab_size):
        piece = tuned.tokenizer.piece(index)
        expected = before[number[piece]] if piece in number else before[: run.tokenizer.vocab_size].mean(0)
        assert torch.allclose(after[index], expected, atol=1e-6), piece
    assert "zebra" not in number


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"set": {"model.hidden": 8}}, r"source=.* does not fit: '.*' is .* there and .* here"),
        ({"model": "lstm"}, r"is a rnn, and a lstm cannot start from its weights"),
    ],
)
def test_run_that_does_not_fit_gets_one_sentence(run, text, about, words):
    sets = {"train.steps": 1, "train.length": 8} | about.get("set", {})
    with pytest.raises(ConfigError, match=words):
        nextword.train(text, source=str(run.path), set=sets, model=about.get("model"))


def test_count_model_has_no_weights_to_begin_with(text, tmp_path):
    made = nextword.train(text, model="ngram", out=tmp_path / "n")
    with pytest.raises(
        ConfigError, match=r"'source' needs a model with weights to start from, and .* is a ngram"
    ):
        nextword.train(text, source=str(made.path))


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ({"train.length": 10**6}, "'train.length' is 1,000,000 tokens at a time, but the whole text has"),
        ({"train.bptt": "truncated(0)"}, "whole number of 1 or more"),
        ({"train.stps": 5}, "unknown setting 'train.stps'; did you mean 'train.steps'"),
        ({"train.batches": "lines"}, "'lines'; did you mean 'windows'? Allowed: auto, columns"),
    ],
)
def test_wrong_settings_get_one_sentence(text, sets, words):
    with pytest.raises(ConfigError) as error:
        nextword.train(text, model="rnn", set=SMALL | sets)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ({"model.context": 10**5}, "'model.context' is 100,000 tokens, but the whole text has only"),
        ({"train.bptt": "random(0.5)"}, "'train.bptt' is random, but a transformer carries no state"),
        ({"train.batches": "columns"}, "'train.batches' is columns, but a transformer carries no state"),
    ],
)
def test_settings_that_a_transformer_cannot_have_get_one_sentence(text, sets, words):
    with pytest.raises(ConfigError) as error:
        nextword.train(text, model="transformer", set=SMALL | {"train.length": 0, "model.context": 32} | sets)
    assert words in str(error.value)


def test_device_and_minutes_are_checked(text):
    with pytest.raises(ConfigError, match="unknown device 'tpu'; "):
        nextword.train(text, model="rnn", device="tpu")
    with pytest.raises(ConfigError, match="'minutes' is 0; it must be more than 0"):
        nextword.train(text, model="rnn", minutes=0)


def test_metrics_are_rows_of_json(run):
    rows = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().split("\n") if line]
    assert rows == run.metrics
    assert rows[0]["step"] == 1
    assert np.isfinite([row["loss"] for row in rows if "loss" in row]).all()


@pytest.mark.slow
def test_training_does_not_load_torch_s_compiler(tmp_path):
    """It takes as long to load as torch itself, and nothing here is compiled."""
    (tmp_path / "t.txt").write_text(TEXT)
    script = (
        "import sys, nextword\n"
        f"nextword.train('t.txt', model='lstm', tokenizer='words', set={SMALL!r})\n"
        "assert 'torch._dynamo' not in sys.modules, 'loaded'\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True)


def test_text_of_words_that_a_run_does_not_know_is_noted_with_the_way_out(run, tmp_path, caplog):
    path = tmp_path / "new.txt"
    path.write_text("kissa istui matolla\nkoira ja kissa lauloivat\n" * 40)
    sets = {key: value for key, value in SMALL.items() if key.startswith("train.")} | {"train.steps": 1}
    nextword.train(path, source=str(run.path), set=sets)
    assert "of the tokens of this text are unknown to the vocabulary of" in caplog.text
    assert "makes a vocabulary of this text" in caplog.text
    caplog.clear()
    nextword.train(path, source=str(run.path), set=sets, tokenizer="words")
    assert "are unknown to the vocabulary" not in caplog.text


def test_measuring_a_long_text_says_beforehand_how_long_it_takes(run, text, monkeypatch):
    def told():
        return notes_of(run.settings.find_task().evaluate(run.trained, [str(text)], {}))

    assert not any("takes" in note for note in told())
    monkeypatch.setattr("nextword.tasks.text_measure._BEGINNING", 50)
    monkeypatch.setattr("nextword.tasks.text_measure.LONG", 0.0)
    assert any(note.startswith("measuring ") and " takes about " in note for note in told())

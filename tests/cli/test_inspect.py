"""``nextword inspect`` on the command line, and `Run.inspect` in Python."""

from __future__ import annotations

import json

import numpy as np
import pytest

import nextword as package


def test_a_count_model_tells_its_evidence(nextword, saved_run):
    done = nextword("inspect", saved_run, "--what", "evidence", "--text", "the cat sang on the roof .")
    assert done.code == 0
    assert "backoff weight" in done.out
    assert "next: nextword inspect" in done.err


def test_without_a_probe_all_that_fit_are_named(nextword, saved_run, tmp_path):
    done = nextword("inspect", saved_run, "--text", "the cat sat", "--out", tmp_path / "x.html")
    assert [line.partition(":")[0] for line in done.out.strip().split("\n")] == [
        "surprise",
        "evidence",
        "beam",
    ]
    assert f"written: {tmp_path / 'x.html'}" in done.err
    assert (tmp_path / "x.html").stat().st_size < 300_000


def test_json_holds_the_arrays(nextword, saved_run):
    done = nextword("inspect", saved_run, "--what", "evidence", "--text", "the cat sat", "--json")
    assert done.json["what"] == "evidence"
    assert len(done.json["arrays"]["p_N"]) == len(done.json["names"]["N"]) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--what", "gates"], "'gates' is for networks with gates"),
        (["--what", "gatse"], "unknown probe 'gatse'; did you mean 'gates'?"),
        (["--what", "beam", "--out", "x.pdf"], "it must end in one of: .html, .svg, .png, .json"),
        (["--what", "beam", "--against", "latest"], "'--against' works with gradients, depth, surprise"),
        (["--what", "beam", "--set-gate", "forget=1"], "'--set-gate' works with gates"),
        (["--what", "evidence", "--text", ""], "give at least one word with --text"),
        (["--set", "beem_size=3"], "unknown setting 'inspect.beem_size'; did you mean 'inspect.beam_size'?"),
        (["--layer", "-1"], "'inspect.layer' is -1; it must be 0 or more"),
    ],
)
def test_a_mistake_is_one_sentence(nextword, saved_run, arguments, message):
    done = nextword("inspect", saved_run, *arguments)
    assert done.code == 1
    assert message in done.err
    assert done.out == ""


def test_a_text_comes_from_standard_input(nextword, saved_run, monkeypatch):
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.StringIO("the dog slept"))
    done = nextword("inspect", saved_run, "--what", "evidence", "--text", "-", "--json")
    assert done.json["names"]["N"][:3] == ["the", "dog", "slept"]


def test_two_runs_side_by_side(nextword, saved_run, tmp_path):
    out = tmp_path / "x.json"
    done = nextword(
        "inspect", saved_run, "--what", "surprise", "--against", saved_run, "--text", "the cow", "--out", out
    )
    assert done.code == 0
    arrays = json.loads(out.read_text())["arrays"]
    assert arrays["bits_N"] == arrays["against_N"]


def test_a_run_is_inspected_from_python(saved_run):
    found = package.load(saved_run).inspect("evidence", text="the cat sat")
    assert found.arrays["order_N"].tolist()[0] >= 2
    assert np.isfinite(found.arrays["p_N"]).all()
    assert package.inspect(saved_run, "beam", text="the", beam_size=2).what == "beam"


@pytest.fixture(scope="module")
def small_lstm(corpus, tmp_path_factory):
    """A network with one layer, trained for a few steps."""
    path = tmp_path_factory.mktemp("runs") / "small"
    settings = {"train.steps": 3, "model.hidden": 8, "model.layers": 1}
    package.train(corpus, model="lstm", tokenizer="characters", set=settings, out=path)
    return path


def test_probes_that_a_short_text_does_not_suit_are_left_out(nextword, small_lstm, tmp_path):
    done = nextword("inspect", small_lstm, "--text", "the cat", "--out", tmp_path / "x.html")
    assert done.code == 0
    shown = [line.partition(":")[0] for line in done.out.strip().split("\n")]
    assert {"gates", "surprise"} <= set(shown)
    assert "linear" not in shown
    sentence = "linear is left out: the text has 9 tokens, of which a linear probe needs 60 or more"
    assert sentence in done.err
    assert sentence in (tmp_path / "x.html").read_text()
    alone = nextword("inspect", small_lstm, "--text", "the cat", "--what", "linear")
    assert (alone.code, alone.out) == (1, "")


@pytest.mark.parametrize("what", [[], ["--what", "gradients"], ["--what", "gates"]])
def test_layer_that_is_not_there_is_an_error(nextword, small_lstm, what):
    done = nextword("inspect", small_lstm, "--layer", 7, "--text", "the cat sat", *what)
    assert done.code == 1
    assert "'--layer' is 7, and the model has 1; choose 1" in done.err


def test_count_model_has_no_layers(nextword, saved_run):
    done = nextword("inspect", saved_run, "--layer", 1, "--text", "the cat sat")
    assert done.code == 1
    assert "has no layers; leave it out" in done.err

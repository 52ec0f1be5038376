"""Settings of neural training that are written as a word with a number, and their mistakes."""

import pytest

from nextword.core.config import build
from nextword.core.errors import ConfigError
from nextword.models.training import Bptt, Forcing, NeuralTrainSettings, parse_bptt, parse_forcing
from nextword.runs.settings import plan


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("full", Bptt("full")),
        ("truncated(35)", Bptt("truncated", chunk=35)),
        (" truncated( 1 ) ", Bptt("truncated", chunk=1)),
        ("random(0.9)", Bptt("random", keep=0.9)),
    ],
)
def test_bptt_is_read(text, meant):
    assert parse_bptt(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("teacher", Forcing("teacher")),
        ("free", Forcing("free")),
        ("scheduled(linear)", Forcing("scheduled", "linear", 0.5)),
        ("scheduled(linear, 0.2)", Forcing("scheduled", "linear", 0.2)),
        ("scheduled(exponential,0.97)", Forcing("scheduled", "exponential", 0.97)),
        ("scheduled(inverse-sigmoid)", Forcing("scheduled", "inverse-sigmoid", 25.0)),
        ("scheduled", Forcing("scheduled", "linear", 0.5)),
    ],
)
def test_forcing_is_read(text, meant):
    assert parse_forcing(text) == meant


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("bptt", "truncated(0)", "whole number of 1 or more"),
        ("bptt", "truncated(2.5)", "whole number of 1 or more"),
        ("bptt", "truncated()", "whole number of 1 or more"),
        ("bptt", "random(0)", "more than 0 and at most 1"),
        ("bptt", "random(nan)", "more than 0 and at most 1"),
        ("bptt", "truncate(3)", "it must be full, truncated(k) or random(p)"),
        ("forcing", "student", "it must be teacher, free or scheduled"),
        ("forcing", "scheduled(cosine)", "unknown schedule 'cosine'; there are: linear"),
        ("forcing", "scheduled(linear, 2)", "the share of true tokens at the end"),
        ("forcing", "scheduled(linear, 2, 3)", "it must be teacher"),
        ("rate", 0, "it must be more than 0"),
        ("optimizer", "adam", "did you mean 'adamw'? Allowed: sgd, adamw, muon"),
        ("betas", [0.9, 1.0], "both must be at least 0"),
        ("batch", 0, "it must be 1 or more"),
        ("smoothing", 1.0, "it must be less than 1"),
    ],
)
def test_wrong_value_gets_one_sentence(key, value, words):
    with pytest.raises(ConfigError) as error:
        build({"train": NeuralTrainSettings}, {f"train.{key}": value})
    assert words in str(error.value)
    assert f"'train.{key}' is" in str(error.value)


def test_count_model_has_no_steps_and_says_so():
    with pytest.raises(ConfigError, match=r"'train\.steps' is not a setting of the model 'ngram'.*one pass"):
        plan("ngram", sets={"train.steps": 5})
    with pytest.raises(ConfigError, match=r"unknown setting 'train\.stteps'"):
        plan("ngram", sets={"train.stteps": 5})


def test_every_setting_says_what_it_is():
    assert all(field.description for field in NeuralTrainSettings.model_fields.values())

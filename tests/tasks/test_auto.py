"""The model 'auto': what it chooses, by time and by the settings that are named."""

from nextword.runs.settings import plan
from nextword.tasks.auto import choose


def test_auto_is_an_ngram_without_minutes():
    assert choose().model == "ngram-good-turing"
    assert choose(["model.smoothing"]).model == "ngram"


def test_auto_with_minutes_follows_the_settings_named():
    assert choose(["model.order"], 1.0).model == "ngram"
    assert choose(["model.hidden"], 1.0).model == "lstm"
    assert choose(["train.rate"], 1.0).model == "lstm"
    assert choose(["train.seed"], 0.01).model == "ngram-good-turing"


def test_auto_with_minutes_mixes_counts_and_a_network():
    choice = choose((), 1.0)
    assert choice.model == "mixture"
    assert choice.sets["model.alone"] is True
    assert plan(choice.model, sets=choice.sets).family == "mixture"

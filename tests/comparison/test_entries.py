"""Who takes part: models, tokenizers and seeds, and which settings are whose."""

from __future__ import annotations

import pytest

from nextword.comparison.entries import FAMILIES, SMOOTHINGS, entries
from nextword.core.errors import ConfigError

pytest.importorskip("torch")


def labels(*args, **kwargs):
    return [entry.label for entry in entries(*args, **kwargs)]


def test_without_names_the_smoothings_are_compared_and_with_minutes_the_families():
    assert labels((), (), 1, {}, None) == list(SMOOTHINGS)
    assert labels((), (), 1, {}, 0.5) == list(FAMILIES)


def test_only_models_that_draw_random_numbers_have_seeds():
    found = labels(["ngram", "lstm", "mixture"], (), 3, {}, None)
    assert found == ["ngram", "lstm", "lstm-seed1", "lstm-seed2", "mixture", "mixture-seed1", "mixture-seed2"]
    assert labels(["ngram", "ngram-katz", "mixture"], (), 3, {}, None) == ["ngram", "ngram-katz", "mixture"]


def test_seeds_count_up_from_the_one_that_is_set():
    found = entries(["lstm"], (), 2, {"train.seed": 7}, None)
    assert [entry.settings.train.seed for entry in found] == [7, 8]


def test_networks_bring_one_tokenizer_for_all():
    assert {entry.tokenizer for entry in entries(["ngram", "lstm"], (), 1, {}, None)} == {"bpe"}
    assert {entry.tokenizer for entry in entries(["ngram"], (), 1, {}, None)} == {"words"}


def test_several_tokenizers_are_told_in_the_name():
    found = entries(["mixture", "ngram", "lstm"], ["words", "bpe"], 1, {}, None)
    assert [entry.name for entry in found] == [
        "ngram words", "lstm words", "mixture words", "ngram bpe", "lstm bpe", "mixture bpe",
    ]  # fmt: skip
    assert found[0].label == "ngram-words"


def test_auto_is_what_it_chooses():
    assert labels(["auto"], (), 1, {}, None) == ["ngram-good-turing"]
    ngram, auto = entries(["auto", "ngram"], (), 1, {}, 1.0)[::-1]
    assert ngram.model == "ngram"
    assert auto.label == "auto"
    assert auto.is_neural
    assert not auto.is_mixture


def test_a_setting_goes_to_the_models_that_have_it():
    ngram, lstm = entries(["ngram", "lstm"], (), 1, {"model.order": 2, "model.hidden": 16}, None)
    assert ngram.settings.model.order == 2
    assert lstm.settings.model.hidden == 16


@pytest.mark.parametrize(
    ("names", "seeds", "sets", "told"),
    [
        (["ngram", "lstm"], 0, {}, "'seeds' is 0"),
        (["ngram", "mixture"], 1, {}, "name at least two"),
        (["ngram", "lstn"], 1, {}, "did you mean 'lstm'"),
        (["ngram", "lstm"], 1, {"model.hiden": 3}, "did you mean 'model.hidden'"),
    ],
)
def test_mistakes_are_one_sentence(names, seeds, sets, told):
    with pytest.raises(ConfigError, match=told):
        entries(names, (), seeds, sets, None)

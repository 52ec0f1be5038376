"""What is said of a prompt: words that the model does not know, and a beginning that it has hardly seen."""

import json

import pytest

import nextword
from nextword.api.prompts import notes_on

LINE = "the cat sat on the mat . the dog saw it and ran .\n"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """N-grams over characters of one long text, over those of many texts, and over the words of lines."""
    folder = tmp_path_factory.mktemp("prompts")
    (folder / "one.txt").write_text(LINE * 80)
    (folder / "many.jsonl").write_text(
        json.dumps({"text": LINE}) + "\n" + (json.dumps({"text": LINE}) + "\n") * 79
    )
    how = {
        "model": "ngram",
        "tokenizer": "characters",
        "set": {"model.order": 3, "model.discounts": (0.5, 1.0, 1.5)},
    }
    return {
        "one": nextword.train(folder / "one.txt", **how),
        "many": nextword.train(folder / "many.jsonl", **how),
        "words": nextword.train(folder / "one.txt", **(how | {"tokenizer": "words"})),
    }


def test_model_of_one_text_says_that_it_knows_no_beginnings(runs):
    assert notes_on(runs["one"], "") == [
        "trained on one text, so it hardly knows how a text begins; give it the first words"
    ]
    assert notes_on(runs["one"], "the ") == []


@pytest.mark.parametrize("name", ["many", "words"])
def test_models_of_many_texts_and_of_lines_know_how_one_begins(runs, name):
    assert notes_on(runs[name], "") == []


def test_unknown_words_are_named(runs):
    assert notes_on(runs["words"], "the zebra sat", "the text") == [
        "not in the vocabulary, so read as unknown in the text: 'zebra'"
    ]

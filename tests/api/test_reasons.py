"""Why a run expects a word: counts, members, attention, and the words that mattered."""

from __future__ import annotations

import pytest
from small_texts import MEETING

import nextword
from nextword.api.reasons import reasons
from nextword.api.typed import typed
from nextword.core.errors import DataError


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("reasons") / "t.txt"
    path.write_text(MEETING * 20)
    return path


def _network(text, model: str):
    pytest.importorskip("torch")
    sets = {"train.steps": 20, "train.batch": 4, "train.length": 16, "model.hidden": 16}
    return nextword.train(text, model=model, tokenizer="words", set=sets)


def test_counts_give_the_probability_that_next_shows(text):
    run = nextword.train(text, model="ngram", set={"model.order": 3})
    row = typed(run, "the cat sat on the", 3).words[0]
    found = reasons(run, "the cat sat on the", row.text)
    assert found.probability == pytest.approx(row.probability)
    assert found.tokens[0].probability == pytest.approx(row.probability, rel=1e-5)
    assert found.tokens[0].levels[0].context == "on the"
    assert found.is_adjusted
    assert found.to_json()["tokens"][0]["levels"][0]["order"] == 3


def test_end_of_the_line_has_reasons_too(text):
    run = nextword.train(text, model="ngram", set={"model.order": 3})
    assert reasons(run, "the cat sat on the mat", "</s>").probability > 0.5


def test_word_that_cannot_come_next_is_refused(text):
    run = nextword.train(text, model="ngram", set={"model.order": 3})
    with pytest.raises(DataError, match="choose a word that is shown"):
        reasons(run, "the cat", "zebra")


def test_network_tells_which_words_mattered(text):
    run = _network(text, "lstm")
    found = reasons(run, "the cat sat on the", "mat")
    assert [word for word, _ in found.left_out] == ["the", "cat", "sat", "on", "the"]
    without = {word: run.score(prompt).tokens[4].logprob for word, prompt in [("cat", "the sat on the mat")]}
    whole = run.score("the cat sat on the mat").tokens[5].logprob
    assert found.left_out[1][1] == pytest.approx((whole - without["cat"]) / 0.6931471805599453, abs=1e-3)
    assert found.looked_at is None


def test_transformer_shows_what_it_looked_at(text):
    run = _network(text, "transformer")
    looked = reasons(run, "the cat sat on the", "mat").looked_at
    assert looked.tokens == ("<s>", "the", "cat", "sat", "on", "the")
    for layer in looked.weights:
        for head in layer:
            assert sum(head) == pytest.approx(1, abs=1e-2)


def test_mixture_shows_the_share_of_each_member(text, tmp_path):
    first = nextword.train(text, model="ngram", set={"model.order": 2}).save(tmp_path / "two")
    second = nextword.train(text, model="ngram", set={"model.order": 3}).save(tmp_path / "three")
    run = nextword.mix(first, second, tune=text)
    found = reasons(run, "the cat sat on the", "mat").tokens[0]
    assert len(found.said) == 2
    assert sum(each.share for each in found.said) == pytest.approx(found.probability)


def test_token_of_a_script_without_spaces_has_reasons(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("人人生而自由\n世界人权宣言\n" * 5, encoding="utf-8")
    run = nextword.train(path, model="ngram", tokenizer="characters", set={"model.order": 3})
    assert reasons(run, "人人生", "而").tokens[0].levels[0].context == "人生"

"""Tokens in their places: joined they are the text again, and their surprise is that of `score`."""

from __future__ import annotations

import pytest
from small_texts import MEETING

import nextword
from nextword.core.errors import DataError
from nextword.evaluation.lm.placed import alternatives, placed, placed_words

TEXTS = [
    "the cat sat",
    "  the cat  sat\n\nthe dog\r\nmet a cat\n",
    "the नमस्ते cat 世界 مرحبا",
    "\n",
    "the cat\n",
]


@pytest.fixture(scope="module", params=["words", "characters", "bytes", "bpe"])
def run(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("placed") / "t.txt"
    path.write_text(MEETING * 10)
    return nextword.train(path, model="ngram", tokenizer=request.param)


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_joined_are_the_text_and_cost_what_score_says(run, text):
    found, score = placed(run.model, run.tokenizer, text), run.score(text)
    assert "".join(token.text for token in found.tokens) == text
    assert sum(token.parts for token in found.tokens) == found.predictions == len(score.tokens)
    bits = sum(token.bits for token in found.tokens)
    assert bits == pytest.approx(-score.logprob / 0.6931471805599453, rel=1e-6)
    assert found.bits_per_byte == pytest.approx(score.bits_per_byte)
    assert found.perplexity == pytest.approx(score.perplexity)
    assert found.unknown == sum(not token.known for token in score.tokens)


@pytest.mark.parametrize("text", [TEXTS[0], TEXTS[1], TEXTS[2], "世界人权宣言序言鉴于对人类家庭所有成员"])
def test_words_joined_are_the_text(run, text):
    assert "".join(word.text for word in placed_words(run.model, run.tokenizer, text)) == text


def test_vowel_signs_stay_with_their_letter(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("मनुष्यों को\n" * 5, encoding="utf-8")
    run = nextword.train(path, model="ngram", tokenizer="characters")
    tokens = placed(run.model, run.tokenizer, "मनुष्यों को").tokens
    assert [token.text for token in tokens] == ["म", "नु", "ष्", "यों", " ", "को", ""]
    assert [token.parts for token in tokens] == [1, 2, 2, 3, 1, 2, 1]


def test_alternatives_are_the_distribution_at_that_place(run):
    text = "the cat sat\nthe dog met"
    tokens = run.score(text).tokens
    for number in (0, 1, len(tokens) - 1):
        found = alternatives(run.model, run.tokenizer, text, number, top=5)
        assert found.text == tokens[number].text
        assert found.probability == pytest.approx(2.718281828459045 ** tokens[number].logprob, rel=1e-5)
        assert [p for _, p in found.likely] == sorted((p for _, p in found.likely), reverse=True)
        better = [p for _, p in found.likely if p > found.probability]
        assert found.rank == len(better) + 1 or found.rank > 5


def test_place_outside_the_text_is_refused(run):
    with pytest.raises(DataError, match="token 1,001 was asked for"):
        alternatives(run.model, run.tokenizer, "the cat", 1000)


def test_empty_text_is_refused(run):
    with pytest.raises(DataError, match="write at least one word"):
        placed(run.model, run.tokenizer, "")

"""What comes next while a text is being typed."""

from __future__ import annotations

import re

import pytest
from small_texts import MEETING

import nextword
from nextword.api.typed import typed
from nextword.core.errors import ConfigError


def _run(tmp_path, text: str, tokenizer: str):
    path = tmp_path / "t.txt"
    path.write_text(text, encoding="utf-8")
    return nextword.train(path, model="ngram", tokenizer=tokenizer, set={"model.order": 3})


@pytest.mark.parametrize("tokenizer", ["words", "characters", "bpe"])
def test_first_words_are_those_of_next(tokenizer, tmp_path):
    run = _run(tmp_path, MEETING * 20, tokenizer)
    found, every = typed(run, "the cat sat on the ", 2), nextword.next(run, "the cat sat on the ", top=2)
    assert [word.text for word in found.words] == [word for word, _ in every]
    assert sum(word.probability for word in found.words) + found.unknown + found.others == pytest.approx(1)


@pytest.mark.parametrize("tokenizer", ["words", "characters", "bpe"])
def test_word_that_has_been_begun_is_completed(tokenizer, tmp_path):
    found = typed(_run(tmp_path, MEETING * 20, tokenizer), "the ca", 3)
    assert (found.asks, found.part, found.words[0].text) == ("completion", "ca", "cat")


def test_known_word_is_followed_by_the_next_one(tmp_path):
    found = typed(_run(tmp_path, MEETING * 20, "words"), "the cat", 3)
    assert (found.asks, found.words[0].text) == ("word", "sat")


@pytest.mark.parametrize(("text", "expected"), [("人人生", "而"), ("世界人 ", "权")])
def test_script_without_spaces_is_continued_by_tokens(text, expected, tmp_path):
    run = _run(tmp_path, "人人生而自由\n世界人 权宣言\n" * 5, "characters")
    found = typed(run, text, 3)
    assert (found.asks, found.words[0].text) == ("token", expected)


def test_bytes_of_an_unfinished_character_are_not_shown(tmp_path):
    run = _run(tmp_path, "人人生而自由 世界人权宣言 序言 鉴于\n" * 3, "bytes")
    for text in ("人人", "a", ""):
        assert not any(re.search(r"\\x[89a-f]", word.text) for word in typed(run, text, 8).words)


def test_letters_that_the_model_does_not_know_stay_as_they_were_typed(tmp_path):
    found = typed(_run(tmp_path, MEETING * 20, "characters"), "the çca", 3)
    assert found.part in ("", "çca")
    assert all("\ufffd" not in word.text for word in found.words)


def test_words_in_any_script_are_whole(tmp_path):
    run = _run(tmp_path, "सभी मनुष्यों को गौरव और अधिकारों\nيولد جميع الناس أحرارا\n" * 5, "words")
    assert typed(run, "सभी मनुष्यों को ", 1).words[0].text == "गौरव"
    assert typed(run, "يولد جميع ", 1).words[0].text == "الناس"


def test_scores_that_are_not_probabilities_are_refused(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text(MEETING * 20)
    run = nextword.train(path, model="ngram-stupid", tokenizer="bpe")
    with pytest.raises(ConfigError, match="scores"):
        typed(run, "the ", 3)

"""Unknown words are named."""

from nextword.text.bytes import ByteTokenizer
from nextword.text.characters import CharacterTokenizer
from nextword.text.unknown import UnknownWords, unknown_note, unknown_words
from nextword.text.words import WordTokenizer


def test_unknown_words_are_named_once_and_in_order():
    tokenizer = WordTokenizer.from_words(["the", "cat"])
    assert unknown_words(tokenizer, "the zebra saw the yak , zebra") == ["zebra", "saw", "yak", ","]
    assert unknown_note(tokenizer, "the cat") == ""
    assert unknown_note(tokenizer, "a b c d e f g").endswith("'a', 'b', 'c', 'd', 'e' and 2 more")


def test_unknown_characters_are_named_not_the_words_around_them():
    assert unknown_words(CharacterTokenizer("abc "), "abc abxc ñ") == ["x", "ñ"]


def test_bytes_know_everything():
    assert unknown_words(ByteTokenizer(), "ñ zebra") == []


def test_unknown_words_of_many_lines_are_some_names_and_a_count():
    tokenizer, found = WordTokenizer.from_words(["the"]), UnknownWords()
    assert found.note() == ""
    for line in range(1000):
        found.add(tokenizer, f"the word{line}")
    assert len(found.words) < 10
    assert found.note().startswith(
        "not in the vocabulary, so read as unknown in 1,000 lines: 'word0', 'word1'"
    )
    assert found.note().endswith("'word4' and others")

"""Unknown words are named."""

from nextword.text.bytes import ByteTokenizer
from nextword.text.characters import CharacterTokenizer
from nextword.text.unknown import unknown_note, unknown_words
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

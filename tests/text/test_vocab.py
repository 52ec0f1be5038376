"""Vocabularies: both ways, escaped, and read from word lists."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core.errors import DataError
from nextword.text.vocab import Vocabulary, are_words, escape, read_word_list, unescape


@given(st.from_regex(r"\\{0,3}(<unk>|<s>|</s>|a)\\?", fullmatch=True))
def test_escaping_can_be_undone_and_never_gives_a_special(word: str) -> None:
    assert unescape(escape(word)) == word
    assert escape(word) not in ("<unk>", "<s>", "</s>")


def test_a_vocabulary_goes_both_ways() -> None:
    vocab = Vocabulary.from_words(["b", "<s>", "é"])
    assert [vocab.id(word) for word in ("b", "é", "zz", "<unk>", "\ud800")] == [3, 5, 0, 0, 0]
    assert [vocab.word(i) for i in range(6)] == ["<unk>", "<s>", "</s>", "b", "<s>", "é"]
    assert list(vocab.pieces()) == [vocab.piece(i) for i in range(6)] == [
        "<unk>", "<s>", "</s>", "b", "\\<s>", "é",
    ]  # fmt: skip
    assert len(vocab) == 6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\nb\na\n", r":3: the word 'a' is listed twice .first in line 1."),
        (b"a\nb c\n", r":2: the word 'b c' contains whitespace"),
        (b"a\n\nb\n", r":2: there is an empty word"),
        (b"a\n<unk>\nb\tc\n", r":3: the word 'b\\tc' contains whitespace"),
        (b"a\n\xff\n", r":2: the vocabulary is not UTF-8"),
        (b"<unk>\n<s>\n", r": the vocabulary is empty"),
    ],
)
def test_a_bad_word_list_is_named_by_its_line(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"vocab\.txt" + message):
        read_word_list(path)


# The file ------------------------------------------------------------------------------------


# Spellings and gaps --------------------------------------------------------------------------


def test_the_first_words_need_no_list_of_all() -> None:
    vocab = Vocabulary.from_words(["b", "<s>", "é"])
    assert vocab.first(2) == ["b", "<s>"]
    assert vocab.first(9) == ["b", "<s>", "é"]
    assert Vocabulary(b"").first(2) == []
    assert "words" not in vars(vocab)


@given(st.lists(st.sampled_from([b"a", b"ab", b"b", b"\xc3\xa9", b" ", b"\n", b"\0", b"\t", b"\x0b"])))
def test_a_stored_list_is_checked_as_by_splitting_it(parts: list[bytes]) -> None:
    joined = b"".join(parts)
    words = joined.split()
    apart = b"".join(word + b"\n" for word in words)
    assert are_words(joined) == (apart == joined and len(set(words)) == len(words) and b"\0" not in joined)


@pytest.mark.parametrize("extra", [b"", b"word77\n"])
def test_checking_a_long_list_takes_little_memory(extra: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nextword.text.vocab._PIECE", 1 << 14)
    joined = b"".join(b"word%d\n" % at for at in range(50_000)) + extra
    tracemalloc.start()
    try:
        assert are_words(joined) == (not extra)
        if not extra:  # as objects the words would take twelve times as much
            assert tracemalloc.get_traced_memory()[1] < 4 * len(joined)
    finally:
        tracemalloc.stop()

"""The tokenizer `words`: vocabulary, ids, gaps and spellings."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenized_texts import all_ids, cut, join

from nextword.core.contracts import END, START, UNKNOWN, Block, Tokenizer
from nextword.core.errors import DataError
from nextword.text import chunks
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import load_tokenizer
from nextword.text.words import WordTokenizer

TEXTS = st.text(
    st.sampled_from("ab<unk>é€😀 \t\v\f\r\n\n  \u00a0\u2028")
    | st.characters(exclude_characters="\0", exclude_categories=("Cs",)),
    max_size=60,
).map(str.encode)
UNITS = st.sampled_from(["line", "document"])


def fitted(data: bytes, unit: Any = "line", **settings: Any) -> WordTokenizer:
    return WordTokenizer.fit([Block(data, True)], TextSettings(**settings), unit)


def test_words_get_ids_in_the_order_of_their_first_occurrence() -> None:
    parts = WordTokenizer.fit_encode([Block(b"b a\nb c b\n\n", True)], TextSettings())
    assert all_ids(iter(parts)) == [START, 3, 4, END, START, 3, 5, 3, END, START, END]
    assert parts.tokenizer.vocab.words == ["b", "a", "c"]
    assert isinstance(parts.tokenizer, Tokenizer)


def test_words_are_split_at_ascii_white_space_only() -> None:
    tokenizer = fitted("a\u00a0b c\u2028d\te\vf\fg\rh\u3000i\u0085j\n".encode())
    assert tokenizer.vocab.words == ["a\u00a0b", "c\u2028d", "e", "f", "g", "h\u3000i\u0085j"]


def test_a_literal_unk_is_an_ordinary_word_unless_asked_otherwise() -> None:
    plain, literal = fitted(b"a <unk> b\n"), fitted(b"a <unk> b\n", unknown="literal")
    assert plain.encode("<unk> zzz").tolist() == [4, UNKNOWN]
    assert plain.piece(4) == "\\<unk>"
    assert plain.decode([4]) == "<unk>"
    assert literal.encode("<unk> zzz b").tolist() == [UNKNOWN, UNKNOWN, 4]


def test_the_tokenizer_is_not_there_before_the_text_was_read() -> None:
    with pytest.raises(RuntimeError, match="all ids"):
        _ = WordTokenizer.fit_encode([Block(b"a", True)], TextSettings()).tokenizer


@given(TEXTS, UNITS, st.sampled_from(["spell", "literal"]))
def test_every_text_is_given_back_byte_for_byte_and_costs_what_was_said(
    data: bytes, unit: Any, unknown: str
) -> None:
    tokenizer = fitted(b"a b  ab\n\ta <unk> \r\nb", unit, unknown=unknown)
    assert tokenizer.can_code(data)
    back, nats, ids = join(tokenizer, data)
    parts = list(tokenizer.encode_blocks([Block(data, True)], costs=True))
    assert back == data
    assert [i for i in all_ids(iter(parts)) if i != START] == ids
    assert math.isclose(sum(part.side_nats for part in parts), nats, abs_tol=1e-9, rel_tol=1e-12)
    assert sum(part.unknown for part in parts) == ids.count(UNKNOWN)


@given(TEXTS, UNITS, st.lists(st.integers(0, 60), max_size=6))
def test_ids_and_costs_do_not_depend_on_where_blocks_end(data: bytes, unit: Any, places: list[int]) -> None:
    tokenizer = fitted(b"a b ab\n", unit)
    whole = list(tokenizer.encode_blocks([Block(data, True)], costs=True))
    parts = list(tokenizer.encode_blocks(cut(data, places), costs=True))
    assert all_ids(iter(whole)) == all_ids(iter(parts))
    for name in ("sequences", "words", "bytes", "unknown"):
        assert sum(getattr(p, name) for p in whole) == sum(getattr(p, name) for p in parts)
    assert math.isclose(sum(p.side_nats for p in whole), sum(p.side_nats for p in parts), abs_tol=1e-9)
    assert sum(p.bytes for p in parts) == len(data)


@given(TEXTS, UNITS, st.lists(st.integers(0, 60), max_size=6))
def test_fitting_gives_the_ids_that_encoding_gives(data: bytes, unit: Any, places: list[int]) -> None:
    fitting = WordTokenizer.fit_encode(cut(data, places), TextSettings(), unit)
    ids = all_ids(iter(fitting))
    assert ids == all_ids(fitting.tokenizer.encode_blocks([Block(data, True)]))
    assert UNKNOWN not in ids


def test_words_of_several_documents_do_not_run_together() -> None:
    blocks = [
        Block(b"a b", True),
        Block(b"", True),
        Block(b"c\n", True),
        Block(b"d", False),
        Block(b"e", True),
    ]
    line, document = (WordTokenizer.fit(blocks, TextSettings(), unit) for unit in ("line", "document"))
    assert line.vocab.words == document.vocab.words == ["a", "b", "c", "de"]
    assert all_ids(line.encode_blocks(blocks)) == [START, 3, 4, END, START, 5, END, START, 6, END]
    assert all_ids(document.encode_blocks(blocks)) == [
        START,
        3,
        4,
        END,
        START,
        END,
        START,
        5,
        END,
        START,
        6,
        END,
    ]


def test_line_ends_count_as_words_where_lines_are_sequences() -> None:
    data = b"a b\n\nc\n"
    (line,), (document,) = (
        list(fitted(data, u).encode_blocks([Block(data, True)])) for u in ("line", "document")
    )
    assert (line.tokens, line.words, line.sequences, line.bytes) == (6, 6, 3, 7)
    assert (document.tokens, document.words, document.sequences) == (4, 3, 1)


@pytest.mark.parametrize(
    ("limits", "words"),
    [({"min_count": 2}, ["b", "a"]), ({"max_vocab": 1}, ["a"]), ({"max_vocab": 3}, ["b", "a", "c"])],
)
def test_a_limited_vocabulary_keeps_the_most_frequent_words_in_order(limits: Any, words: list[str]) -> None:
    data = b"b a a\nb a c d\n"
    fitting = WordTokenizer.fit_encode([Block(data, True)], TextSettings(**limits))
    ids = all_ids(iter(fitting))
    assert fitting.tokenizer.vocab.words == words
    assert ids == all_ids(fitting.tokenizer.encode_blocks([Block(data, True)]))
    assert UNKNOWN in ids


def test_normalising_is_applied_everywhere_and_said() -> None:
    tokenizer = fitted("Cafe\u0301 É A\n".encode(), normalize="nfc", lowercase=True)
    assert tokenizer.vocab.words == ["café", "é", "a"]
    assert tokenizer.encode("CAFÉ a").tolist() == [3, 5]
    assert all_ids(tokenizer.encode_blocks([Block("CAFE\u0301".encode(), True)])) == [START, 3, END]
    assert not tokenizer.lossless
    assert not tokenizer.can_code(b"a")
    assert not fitted(b"a").can_code(b"\xff")
    assert not fitted(b"a").can_code(b"a\0")


def test_two_threads_give_what_one_gives() -> None:
    blocks = [Block(b"a b c %d\n" % i * 50_000, i == 9) for i in range(10)]
    tokenizer = fitted(b"a c 3 5 7")
    one, two = (list(tokenizer.encode_blocks(blocks, threads=n)) for n in (1, 2))
    assert all(np.array_equal(a.ids, b.ids) for a, b in zip(one, two, strict=True))


def test_half_a_surrogate_pair_is_our_error() -> None:
    with pytest.raises(DataError, match=r"a lone surrogate .U.D800. at character 3"):
        fitted(b"a").encode("a \ud800")


def test_a_word_without_end_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "WORD_LIMIT", 50)
    blocks = [Block(b"a\n", False), Block(b"x" * 60, False, "f.txt", 2), Block(b"x" * 60, True)]
    with pytest.raises(DataError, match=r"f\.txt:2: there is a word of more than"):
        list(fitted(b"a").encode_blocks(blocks))


def test_spellings_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [Block(b"x y z%d\n" % i + b" " * 1_100_000 + b"\n", True) for i in range(3)]
    tokenizer = fitted(b"a")
    before = [part.side_nats for part in tokenizer.encode_blocks(blocks, costs=True)]
    monkeypatch.setattr("nextword.text.words._REMEMBERED", 0)
    assert [part.side_nats for part in tokenizer.encode_blocks(blocks, costs=True)] == pytest.approx(before)


@settings(max_examples=30)
@given(TEXTS, UNITS, st.sampled_from(["spell", "literal"]))
def test_a_saved_tokenizer_is_the_same(tmp_path_factory: Any, data: bytes, unit: Any, unknown: str) -> None:
    tokenizer = fitted(data, unit, unknown=unknown)
    path: Path = tmp_path_factory.mktemp("t") / "tokenizer.json"
    tokenizer.save(path)
    again = load_tokenizer(path)
    other = b"a b <unk>\t c\r\n d"
    assert again.unit == unit
    assert join(again, other) == join(tokenizer, other)
    assert [again.piece(i) for i in range(again.vocab_size)] == list(tokenizer.vocab.pieces())


def test_the_decoder_joins_words_by_one_space() -> None:
    decoder = fitted(b"a b").decoder()
    assert [decoder.push(i) for i in (START, 3, 4, UNKNOWN, END)] == ["", "a", " b", " <unk>", ""]
    assert decoder.flush() == ""


@pytest.mark.parametrize("words", [["a", "a"], ["a b"], [""]])
def test_words_that_are_none_are_refused(words: list[str]) -> None:
    with pytest.raises(DataError):
        WordTokenizer.from_words(words)

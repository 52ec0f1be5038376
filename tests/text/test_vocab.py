"""Vocabularies, their files, spellings and gaps."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.contracts import Block
from nextword.core.errors import ConfigError, DataError, FormatError
from nextword.text import files
from nextword.text.compare import compare
from nextword.text.files import load_tokenizer
from nextword.text.fit import (
    check_tokenizer,
    default_unit,
    fit_tokenizer,
    tokenizer_from_file,
    vocabulary_note,
)
from nextword.text.gaps import GapModel
from nextword.text.settings import TextSettings
from nextword.text.speller import SYMBOLS, Speller
from nextword.text.vocab import Vocabulary, escape, read_word_list, unescape
from nextword.text.words import WordTokenizer

BLOCKS = [Block(b"the cat sat\nthe dog\n", True)]


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


def test_a_word_list_is_a_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"<unk>\n<s>\n</s>\nthe\r\n#tag\r\n\\<s>\n")
    tokenizer = fit_tokenizer(str(path), [], TextSettings())
    assert isinstance(tokenizer, WordTokenizer)
    assert tokenizer.vocab.words == ["the", "#tag", "<s>"]
    assert tokenizer.encode("#tag <s> x").tolist() == [4, 5, 0]


@pytest.mark.parametrize("words", [["a", "a"], ["a b"], [""]])
def test_words_that_are_none_are_refused(words: list[str]) -> None:
    with pytest.raises(DataError):
        WordTokenizer.from_words(words)


@pytest.mark.parametrize("name", ["words", "characters", "bytes", "bpe", "unigram"])
def test_every_tokenizer_is_fitted_by_its_name(name: str, tmp_path: Path) -> None:
    tokenizer = fit_tokenizer(name, BLOCKS, TextSettings())
    assert (tokenizer.name, tokenizer.unit) == (name, default_unit(name))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        again = fit_tokenizer(str(path), [], TextSettings())
        assert again.encode("the cat").tolist() == tokenizer.encode("the cat").tolist()
    assert fit_tokenizer(name, BLOCKS, TextSettings(), "line").unit == "line"


def test_an_unknown_tokenizer_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'words'"):
        check_tokenizer("wrods")


def test_a_tokenizer_file_that_cannot_be_read_is_our_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none\.json: the tokenizer cannot be read"):
        tokenizer_from_file(tmp_path / "none.json", TextSettings())


def test_a_vocabulary_of_codes_gets_a_note() -> None:
    assert vocabulary_note(10, 100) is None
    assert "text.max_vocab" in str(vocabulary_note(2_000_000, 10_000_000))
    assert vocabulary_note(80_000, 110_000) is not None


def test_tokenizers_are_compared_on_one_text() -> None:
    made = {name: fit_tokenizer(name, BLOCKS, TextSettings()) for name in ("words", "bytes")}
    words, plain = compare(made, [Block(b"the cow\n", True)])
    assert (words.tokens, words.unknown, words.words, words.bytes) == (3, 1, 3, 8)
    assert words.unknown_rate == pytest.approx(1 / 3)
    assert plain.bytes_per_token == pytest.approx(8 / 9)
    assert plain.tokens_per_word == 4.5
    empty = compare(made, [])[0]
    assert (empty.bytes_per_token, empty.tokens_per_word, empty.unknown_rate) == (0, 0, 0)


# The file ------------------------------------------------------------------------------------


def saved(folder: Path) -> dict[str, Any]:
    fit_tokenizer("words", BLOCKS, TextSettings()).save(str(folder / "tokenizer.json"))
    values: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text())
    return values


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 99},
        {"version": "1"},
        {"name": "wrods"},
        {"unit": "page"},
        {"words": "a\nb"},
        {"words": "a\na\n"},
        {"words": "a b\n"},
        {"words": "\n"},
        {"words": "a\0\n"},
        {"words": "\ud800\n"},
        {"words": 3},
        {"lowercase": 1},
        {"literal": -1},
        {"literal": True},
        {"gaps": None},
        {"gaps": {"leading": {}}},
    ],
)
def test_a_wrong_field_is_our_error(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(saved(tmp_path) | change))
    with pytest.raises(FormatError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("listed", [["x", 1]]),
        ("listed", []),
        ("listed", [["", -1]]),
        ("listed", [["", 1.5]]),
        ("escaped", None),
        ("listed", [[" " * n, 1] for n in range(70)]),
    ],
)
def test_wrong_gaps_are_our_error(kind: str, value: Any, tmp_path: Path) -> None:
    values = saved(tmp_path)
    values["gaps"]["leading"][kind] = value
    (tmp_path / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(FormatError, match="the tokenizer's gaps"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 200_000, b"null"])
def test_what_is_no_tokenizer_file_is_our_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(FormatError, match=r"tokenizer\.json"):
        load_tokenizer(tmp_path)


def test_a_missing_or_huge_tokenizer_is_our_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        load_tokenizer(tmp_path / "none.json")
    saved(tmp_path)
    monkeypatch.setattr(files, "_LIMIT", 10)
    with pytest.raises(FormatError, match="too large"):
        load_tokenizer(tmp_path)


@settings(max_examples=60)
@given(st.data())
def test_a_fuzzed_tokenizer_file_raises_our_error_only(tmp_path_factory: Any, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    saved(folder)
    path = folder / "tokenizer.json"
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(
        content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
    )
    with contextlib.suppress(FormatError):
        load_tokenizer(path).encode("the cat")


# Spellings and gaps --------------------------------------------------------------------------


@given(
    st.lists(st.binary(min_size=1, max_size=5).filter(lambda w: 0 not in w), max_size=6),
    st.binary(min_size=3, max_size=3),
)
def test_spelling_probabilities_sum_to_one(words: list[bytes], context: bytes) -> None:
    p = Speller(words).distribution(context)
    assert len(p) == SYMBOLS
    assert math.isclose(p.sum(), 1.0, abs_tol=1e-12)
    assert (p > 0).all()


@given(
    st.lists(st.binary(min_size=1, max_size=5).filter(lambda w: 0 not in w), max_size=6),
    st.lists(st.binary(min_size=1, max_size=9).filter(lambda w: 0 not in w), min_size=1, max_size=5),
)
def test_the_cost_of_many_words_is_the_cost_of_each(taught: list[bytes], words: list[bytes]) -> None:
    speller = Speller(taught)
    each = [-sum(math.log(p[i]) for p, i in speller.symbols(word)) for word in words]
    assert np.allclose(speller.costs(words), each, rtol=1e-12, atol=1e-12)


def test_words_like_those_seen_are_cheaper_to_spell() -> None:
    speller = Speller([b"walking", b"talking", b"walked", b"talked"])
    likely, unlikely = speller.costs([b"walks", b"xqzzv"])
    assert likely < unlikely


def test_distributions_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nextword.text.speller._KEPT", 2)
    speller = Speller([b"abc"])
    first = speller.distribution(b"\0\0\0")
    for byte in range(5):
        speller.distribution(bytes([byte, 1, 1]))
    assert np.array_equal(speller.distribution(b"\0\0\0"), first)


def test_expected_gaps_cost_next_to_nothing_and_rare_ones_more() -> None:
    model = GapModel.fit(Counter({(1, b" "): 10**6, (1, b"\t"): 10, (0, b""): 10**5}))
    assert model.cost(1, b" ") < 2e-5
    assert 5 < model.cost(1, b"\t") < model.cost(1, b"\v\v\v")
    assert model.cost(3, b"") < 1.0


def test_many_kinds_of_gaps_are_all_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nextword.text.gaps.LISTED", 3)
    model = GapModel.fit(Counter({(1, b" " * n): 100 - n for n in range(1, 50)}))
    assert len(model.listed[1]) == 3
    assert model.escaped[1] > 0
    for n in range(1, 50):
        asking = model.ask(1)
        next(asking)
        *symbols, (_, last) = model.symbols(1, b" " * n)
        for _, symbol in symbols:
            asking.send(symbol)
        with pytest.raises(StopIteration) as stop:
            asking.send(last)
        assert stop.value.value == b" " * n


def test_gap_costs_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    model = GapModel.default()
    costs = {n: model.cost(0, b" " * (n % 300)) for n in range(300)}
    model._costs = {(0, b"%d" % n): 0.0 for n in range((1 << 16) + 1)}
    assert model.cost(0, b" " * 299 + b"\t") > costs[298]
    assert len(model._costs) == 1

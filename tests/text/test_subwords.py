"""BPE and unigram: exact, and independent of how the text was read."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.contracts import END, START, Block, Tokenizer
from nextword.core.errors import DataError, FormatError
from nextword.text import sequences, subwords
from nextword.text.settings import TextSettings
from nextword.text.subwords import SubwordTokenizer, byte_characters, default_size
from nextword.text.tokenizers import load_tokenizer

TEXT = (
    "the cat sat on the mat\n\n  and the dog ate the log\t\n" * 40 + "größer als 日本語 😀\n" * 10
).encode()
TEXTS = st.text(
    st.sampled_from("the cat \n\n \t\r") | st.characters(exclude_characters="\0", exclude_categories=("Cs",)),
    max_size=60,
)
NAMES = ["bpe", "unigram"]


def fitted(name: str, unit: Any = "document", data: bytes = TEXT, **values: Any) -> SubwordTokenizer:
    return SubwordTokenizer.fit([Block(data, True)], TextSettings(tokenizer=name, size=300, **values), unit)


MADE = {(name, unit): fitted(name, unit) for name in NAMES for unit in ("document", "line")}
KINDS = st.sampled_from(sorted(MADE))


def ids_of(tokenizer: Any, blocks: list[Block]) -> list[int]:
    return [int(i) for part in tokenizer.encode_blocks(blocks) for i in part.ids]


def joined(tokenizer: Any, data: bytes) -> tuple[bytes, list[int]]:
    joiner, out, ids = tokenizer.joiner(), b"", []
    joiner.begin()
    for index, symbols in tokenizer.split(data):
        assert symbols == ()
        ids.append(index)
        with pytest.raises(StopIteration) as stop:
            next(joiner.push(index))
        out += stop.value.value
    return out[: len(data)], ids


@pytest.mark.parametrize("name", NAMES)
def test_the_vocabulary_has_all_bytes_and_the_size_asked_for(name: str) -> None:
    tokenizer = MADE[name, "document"]
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.vocab_size <= 300
    assert tokenizer.closed
    assert {tokenizer._data(i) for i in range(3, tokenizer.vocab_size)} >= {
        bytes([byte]) for byte in range(256)
    }
    assert [tokenizer.piece(i) for i in range(3)] == ["<unk>", "<s>", "</s>"]
    assert "\\xff" in {tokenizer.piece(i) for i in range(3, tokenizer.vocab_size)}


@given(TEXTS, KINDS)
def test_every_text_is_given_back_exactly(text: str, kind: Any) -> None:
    tokenizer, data = MADE[kind], text.encode()
    assert tokenizer.decode(tokenizer.encode(text)) == text
    back, ids = joined(tokenizer, data)
    assert back == data
    assert ids == [i for i in ids_of(tokenizer, [Block(data, True)]) if i != START]
    decoder = tokenizer.decoder()
    assert "".join(decoder.push(int(i)) for i in tokenizer.encode(text)) + decoder.flush() == text


@given(TEXTS, KINDS, st.lists(st.integers(0, 80), max_size=5), st.integers(2, 8))
def test_ids_and_counts_do_not_depend_on_blocks(text: str, kind: Any, places: list[int], long: int) -> None:
    tokenizer, data = MADE[kind], text.encode()
    ends = sorted({min(place, len(data)) for place in places} | {len(data)})
    starts = [0, *ends[:-1]]
    blocks = [Block(data[a:b], b == len(data)) for a, b in zip(starts, ends, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequences, "_LONG", long)
        whole = list(tokenizer.encode_blocks([Block(data, True)]))
        parts = list(tokenizer.encode_blocks(blocks))
        assert joined(tokenizer, data)[0] == data
    assert [int(i) for p in whole for i in p.ids] == [int(i) for p in parts for i in p.ids]
    for field in ("sequences", "words", "bytes", "unknown"):
        assert sum(getattr(p, field) for p in whole) == sum(getattr(p, field) for p in parts)
    assert sum(p.bytes for p in parts) == len(data)
    ends_of_lines = sum(p.ids.tolist().count(END) for p in whole) if kind[1] == "line" else 0
    assert sum(p.words for p in whole) == len(data.split()) + ends_of_lines


@pytest.mark.parametrize("name", NAMES)
def test_learning_twice_gives_the_same_pieces(name: str) -> None:
    one, two = fitted(name), fitted(name)
    assert one._model == two._model


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_tokenizer_is_the_same(name: str, tmp_path: Path) -> None:
    tokenizer = MADE[name, "line"]
    tokenizer.save(tmp_path / "tokenizer.json")
    again = load_tokenizer(tmp_path)
    assert (again.name, again.unit, again.vocab_size) == (name, "line", tokenizer.vocab_size)
    assert np.array_equal(again.encode("the cat größer 😀\n"), tokenizer.encode("the cat größer 😀\n"))


def _damage(model: Any, how: str) -> Any:
    model = copy.deepcopy(model)
    vocab = model.get("vocab")
    if how == "type":
        model["type"] = "WordPiece"
    elif how == "no vocab":
        del model["vocab"]
    elif how == "missing byte" and isinstance(vocab, dict):
        vocab["aaaa"] = vocab.pop("!")
    elif how == "missing byte":
        vocab[next(i for i, (name, _) in enumerate(vocab) if name == "!")][0] = "aaaa"
    elif how == "ids":
        vocab["!"] = 10**9
    elif how == "merge":
        model["merges"].append(["zz", "zz"])
    elif how == "twice":
        vocab.append(vocab[0])
    elif how == "score":
        vocab[0][1] = float("inf")
    elif how == "not bytes" and isinstance(vocab, dict):
        vocab["日"] = len(vocab)
    else:
        vocab.append(["日", -1.0])
    return model


DAMAGES = [(n, how) for n in NAMES for how in ("type", "no vocab", "missing byte", "not bytes")]
DAMAGES += [("bpe", "ids"), ("bpe", "merge"), ("unigram", "twice"), ("unigram", "score")]


@pytest.mark.parametrize(("name", "how"), DAMAGES)
def test_damaged_pieces_are_our_error(name: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    MADE[name, "line"].save(path)
    values = json.loads(path.read_text())
    values["model"] = _damage(values["model"], how)
    path.write_text(json.dumps(values))
    with pytest.raises(FormatError, match=r"tokenizer\.json: the tokenizer's subwords"):
        load_tokenizer(path)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(NAMES), TEXTS.filter(str.strip))
def test_any_text_can_be_learned_from(name: str, text: str) -> None:
    tokenizer = fitted(name, data=text.encode())
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_nothing_cannot_be_learned_from() -> None:
    with pytest.raises(DataError, match="too short"):
        fitted("unigram", data=b"")


def test_learning_reads_no_more_than_it_is_told() -> None:
    def blocks() -> Any:
        yield Block(TEXT * 600, False)
        raise AssertionError("read too far")

    SubwordTokenizer.fit(blocks(), TextSettings(tokenizer="bpe", size=300, fit_bytes=1000), "document")


def test_sizes_grow_with_the_text() -> None:
    assert [default_size(n) for n in (0, 10**6, 10**8, 10**12)] == [512, 1984, 19968, 32768]


def test_a_small_size_still_has_all_bytes() -> None:
    made = SubwordTokenizer.fit([Block(TEXT, True)], TextSettings(tokenizer="bpe", size=10), "document")
    assert made.vocab_size == 259


def test_bytes_are_shown_as_the_library_shows_them() -> None:
    pre_tokenizers = pytest.importorskip("tokenizers").pre_tokenizers
    assert set(byte_characters()) == set(pre_tokenizers.ByteLevel.alphabet())


def test_normalising_is_applied_and_said() -> None:
    made = fitted("bpe", lowercase=True)
    assert made.encode("THE CAT").tolist() == made.encode("the cat").tolist()
    assert not made.lossless
    assert not made.can_code(b"a")
    assert MADE["bpe", "line"].can_code(b"a")


def test_a_failing_library_is_our_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class PanicError(BaseException):
        """As Rust's panics are."""

    def panic(model: Any) -> Any:
        raise PanicError("index out of bounds")

    MADE["bpe", "line"].save(tmp_path / "tokenizer.json")
    monkeypatch.setattr(subwords, "_build", panic)
    with pytest.raises(FormatError, match="are inconsistent"):
        load_tokenizer(tmp_path)


def test_a_library_that_cannot_learn_is_our_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(text: str) -> Any:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(subwords.json, "loads", broken)
    with pytest.raises(DataError, match="cannot be trained"):
        fitted("bpe")

"""The tokenizers `bytes` and `characters`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenized_texts import cut, join

from nextword.core.contracts import END, START, UNKNOWN, Block, Tokenizer
from nextword.core.errors import FormatError
from nextword.text.bytes import ByteTokenizer
from nextword.text.characters import CharacterTokenizer
from nextword.text.settings import TextSettings
from nextword.text.tokenizers import load_tokenizer

TEXTS = st.text(
    st.sampled_from("ab é€😀\n\n\t\r") | st.characters(exclude_characters="\0", exclude_categories=("Cs",)),
    max_size=40,
)
UNITS = st.sampled_from(["line", "document"])


def characters(text: str = "ab\né b€", unit: Any = "document", **values: Any) -> CharacterTokenizer:
    return CharacterTokenizer.fit([Block(text.encode(), True)], TextSettings(**values), unit)


def make(kind: str, unit: Any) -> Any:
    return ByteTokenizer(unit) if kind == "bytes" else characters(unit=unit)


@given(TEXTS, UNITS, st.sampled_from(["bytes", "characters"]), st.lists(st.integers(0, 60), max_size=5))
def test_every_text_is_given_back_and_costs_what_was_said(
    text: str, unit: Any, kind: str, places: Any
) -> None:
    tokenizer, data = make(kind, unit), text.encode()
    assert isinstance(tokenizer, Tokenizer)
    assert tokenizer.can_code(data)
    back, nats, ids = join(tokenizer, data)
    parts = list(tokenizer.encode_blocks(cut(data, places), costs=True))
    found = [int(i) for part in parts for i in part.ids]
    assert back == data
    assert [i for i in found if i != START] == ids
    assert math.isclose(sum(part.side_nats for part in parts), nats, abs_tol=1e-9)
    assert sum(part.bytes for part in parts) == len(data)
    assert sum(part.sequences for part in parts) == found.count(START) == found.count(END)
    assert sum(part.unknown for part in parts) == found.count(UNKNOWN)
    ends = found.count(END) if unit == "line" else 0
    assert sum(part.words for part in parts) == len(data.split()) + ends


@given(st.binary(max_size=50), UNITS)
def test_bytes_code_any_file(data: bytes, unit: Any) -> None:
    tokenizer = ByteTokenizer(unit)
    assert tokenizer.can_code(data)
    assert join(tokenizer, data)[0] == data


def test_characters_get_ids_in_the_order_of_their_first_occurrence() -> None:
    tokenizer = characters("ba€\nab😀")
    assert tokenizer.characters == "ba€\n😀"
    assert tokenizer.encode("a😀z").tolist() == [4, 7, UNKNOWN]
    assert tokenizer.decode([START, 4, 7, UNKNOWN, END]) == "a😀\ufffd"
    assert [tokenizer.piece(i) for i in range(8)] == ["<unk>", "<s>", "</s>", "b", "a", "€", "\n", "😀"]
    assert characters("ba\nab", "line").characters == "ba"


def test_characters_of_many_blocks_keep_their_order() -> None:
    blocks = [Block(b"xyx", False), Block("zé".encode(), False), Block("€x".encode(), True)]
    assert CharacterTokenizer.fit(blocks, TextSettings()).characters == "xyzé€"


def test_rare_characters_become_unknown() -> None:
    assert characters("aabbbc", min_count=2).characters == "ab"
    assert characters("aabbbc", max_vocab=1).characters == "b"


def test_bytes_are_shown_escaped_where_they_cannot_be_seen() -> None:
    tokenizer = ByteTokenizer()
    assert [tokenizer.piece(3 + b) for b in b"a\n\\"] == ["a", "\\x0a", "\\x5c"]
    assert tokenizer.piece(END) == "</s>"
    assert tokenizer.decode(tokenizer.encode("é\n")) == "é\n"


def test_decoders_never_split_a_character() -> None:
    tokenizer = ByteTokenizer()
    decoder = tokenizer.decoder()
    assert [decoder.push(int(i)) for i in tokenizer.encode("é€")] == ["", "é", "", "", "€"]
    assert decoder.push(3 + 0xE2) == ""
    assert decoder.push(END) == ""
    assert decoder.flush() == "\ufffd"
    joined = characters().decoder()
    assert joined.push(3) + joined.push(4) + joined.flush() == "ab"


@pytest.mark.parametrize("kind", ["bytes", "characters"])
def test_a_saved_tokenizer_is_the_same(kind: str, tmp_path: Path) -> None:
    tokenizer = make(kind, "line")
    tokenizer.save(tmp_path / "tokenizer.json")
    again = load_tokenizer(tmp_path / "tokenizer.json")
    assert (again.name, again.unit, again.vocab_size) == (kind, "line", tokenizer.vocab_size)
    assert again.encode("aé€z").tolist() == tokenizer.encode("aé€z").tolist()


def test_normalising_is_applied_and_said() -> None:
    lower = characters("aé", lowercase=True, normalize="nfc")
    assert lower.encode("AE\u0301").tolist() == [3, 4]
    assert not lower.can_code(b"a")
    made = ByteTokenizer.fit([], TextSettings(lowercase=True))
    assert made.encode("A").tolist() == made.encode("a").tolist()
    assert not made.can_code(b"a")


def test_many_small_documents_come_in_one_piece() -> None:
    blocks = [Block(b"ab", True)] * 1000
    (part,) = ByteTokenizer().encode_blocks(blocks)
    assert (part.sequences, part.words, part.bytes, part.tokens) == (1000, 1000, 2000, 3000)


def test_words_are_counted_across_pieces_of_a_large_document() -> None:
    data = b"some words " * 1000
    blocks = [Block(data[:5005], False), Block(data[5005:], False), Block(b"", True)]
    assert sum(part.words for part in ByteTokenizer().encode_blocks(blocks)) == 2000


def test_an_unended_document_is_ended() -> None:
    (part,) = characters().encode_blocks([Block(b"a", False)])
    assert part.ids.tolist() == [START, 3, END]


@pytest.mark.parametrize("listed", ["aa", "a\ud800", None, 7])
def test_damaged_characters_are_our_error(listed: Any, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    characters().save(path)
    values = json.loads(path.read_text())
    values["characters"] = listed
    path.write_text(json.dumps(values))
    with pytest.raises(FormatError, match=r"tokenizer\.json"):
        load_tokenizer(path)

"""Patterns of subwords: with Qwen2's, cutting a text changes no id; GPT-2's is kept for earlier runs."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.contracts import Block
from nextword.core.errors import FormatError
from nextword.runs.settings import from_toml, plan
from nextword.text import sequences
from nextword.text.patterns import PATTERNS, QWEN2
from nextword.text.settings import TextSettings
from nextword.text.subwords import FIRST_PIECE, SubwordTokenizer
from nextword.text.tokenizers import load_tokenizer

ROOT = Path(__file__).parents[2]
SOURCE = (
    "def add(a, b):\n    return a + b  # 12 of 345\n\n\n\tif x:\r\n\r\n  y = 'it''s' !!\n \n"
    "größer\u00a0als 日本語。はい、\u3000Ⅷ ½ 😀\n\u2028\nэто да\n" * 30
)
TEXTS = st.text(
    st.sampled_from("ab 'S1,!\n\n\t\r\u0085\u00a0\u2003\u2028\u3000ж字。ア\u0301😀")
    | st.characters(exclude_characters="\0", exclude_categories=("Cs",)),
    max_size=80,
)


def fitted(name: str = "bpe", **values: Any) -> SubwordTokenizer:
    options = TextSettings(tokenizer=name, size=500, **values)
    return SubwordTokenizer.fit([Block(SOURCE.encode(), True)], options, "document")


MADE = {name: fitted(name) for name in ("bpe", "unigram")}


def whole(tokenizer: SubwordTokenizer, text: str) -> list[int]:
    """Return the ids that the library alone gives the uncut text."""
    return [FIRST_PIECE + i for i in tokenizer._library.encode(text, add_special_tokens=False).ids]


def streamed(tokenizer: SubwordTokenizer, text: str, size: int) -> list[int]:
    data = text.encode()
    cuts = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
    blocks = [Block(cut, number == len(cuts)) for number, cut in enumerate(cuts, start=1)]
    return [int(i) for part in tokenizer.encode_blocks(blocks) for i in part.ids][1:-1]


@pytest.mark.parametrize("name", MADE)
@given(text=TEXTS, size=st.integers(1, 30))
@settings(max_examples=150, deadline=None)
def test_a_text_in_blocks_has_the_ids_of_the_whole_text(name, text, size):
    expected = whole(MADE[name], text)
    assert MADE[name].encode(text).tolist() == expected
    assert streamed(MADE[name], text, size) == expected


@given(words=st.lists(TEXTS, max_size=12), size=st.integers(1, 30))
@settings(max_examples=150, deadline=None)
def test_long_lines_are_cut_without_changing_an_id(words, size):
    text = "".join(f"{word} x7(ж 字。" for word in words).replace("\n", " ")  # never long without a place
    before, sequences._LONG = sequences._LONG, 160
    try:
        assert len(list(sequences.parts(text.encode(), PATTERNS["qwen2"]))) > len(text.encode()) // 400
        assert streamed(MADE["bpe"], text, size) == whole(MADE["bpe"], text)
    finally:
        sequences._LONG = before


def test_the_files_of_this_program_have_the_ids_of_the_whole_files():
    files = [*sorted(ROOT.glob("nextword/*/*.py"))[:40], *sorted(ROOT.glob("docs/*.md"))[:10]]
    texts = [file.read_text(encoding="utf-8") for file in files]
    assert all(streamed(MADE["bpe"], text, 997) == whole(MADE["bpe"], text) for text in texts)
    old = fitted(pattern="gpt2")
    assert any(streamed(old, text, 997) != whole(old, text) for text in texts)  # the cut changes those


def test_white_space_is_that_of_the_library():
    spaces = {chr(code) for code in range(sys.maxunicode) if re.match(r"\s", chr(code))} - set(
        "\x1c\x1d\x1e\x1f"
    )
    for space in sorted(spaces):
        text = f"a\n{space}\nb"
        assert MADE["bpe"].encode(text).tolist() == whole(MADE["bpe"], text), hex(ord(space))


def test_digits_are_taken_one_by_one_and_no_piece_goes_past_a_line_end():
    tokenizer = MADE["bpe"]
    pieces = [tokenizer.piece(i) for i in tokenizer.encode("a 1234 b\n\n  c()\n\td")]
    assert [piece for piece in pieces if piece.isdigit()] == list("1234")
    assert not any("\n" in piece.rstrip("\n") for piece in pieces)


def test_bytes_in_are_bytes_out():
    data = SOURCE.encode()
    for tokenizer in (*MADE.values(), fitted(pattern="gpt2")):
        joiner, out = tokenizer.joiner(), b""
        joiner.begin()
        for index, _ in tokenizer.split(data):
            with pytest.raises(StopIteration) as stop:
                next(joiner.push(index))
            out += stop.value.value
        assert out == data


def test_a_saved_tokenizer_keeps_its_pattern(tmp_path):
    for pattern in PATTERNS:
        made = fitted(pattern=pattern)
        made.save(tmp_path / "tokenizer.json")
        loaded = load_tokenizer(tmp_path)
        assert isinstance(loaded, SubwordTokenizer)
        assert loaded.pattern == pattern
        assert loaded.encode(SOURCE).tolist() == made.encode(SOURCE).tolist()


def test_a_tokenizer_saved_without_a_pattern_has_that_of_gpt2(tmp_path):
    made, file = fitted(pattern="gpt2"), tmp_path / "tokenizer.json"
    made.save(file)
    fields = json.loads(file.read_text())
    del fields["pattern"]
    file.write_text(json.dumps(fields))
    loaded = load_tokenizer(file)
    assert loaded.encode(SOURCE).tolist() == made.encode(SOURCE).tolist()
    assert loaded.encode(SOURCE).tolist() != MADE["bpe"].encode(SOURCE).tolist()


def test_an_unknown_pattern_is_an_error(tmp_path):
    file = tmp_path / "tokenizer.json"
    MADE["bpe"].save(file)
    file.write_text(file.read_text().replace('"qwen2"', '"llama"'))
    with pytest.raises(FormatError, match="'pattern' is 'llama', expected gpt2 or qwen2"):
        load_tokenizer(file)


def test_new_runs_have_the_new_pattern_and_earlier_ones_the_old():
    new = plan("lstm")
    assert new.text.pattern == "qwen2"
    text = new.to_toml()
    assert from_toml(text, "config.toml").text.pattern == "qwen2"
    earlier = "\n".join(line for line in text.split("\n") if not line.startswith("pattern ="))
    assert from_toml(earlier, "config.toml").text.pattern == "gpt2"


def test_the_library_accepts_the_pattern_as_written():
    from tokenizers import Regex, pre_tokenizers

    found = pre_tokenizers.Split(Regex(QWEN2), "isolated").pre_tokenize_str("It'S 42\n\n  (yes)")
    assert [piece for piece, _ in found] == ["It", "'S", " ", "4", "2", "\n\n", " ", " (", "yes", ")"]

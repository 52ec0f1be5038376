"""A text in two parts: together they are the whole, and the second is about the share asked for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nextword.core.contracts import Block
from nextword.core.errors import DataError
from nextword.data.settings import DataSettings
from nextword.data.split import Cut, _side, divide, hold_out

LINES = st.lists(st.text("ab \n", max_size=8).map(str.encode), min_size=1, max_size=12)


@given(LINES, st.lists(st.booleans(), min_size=12, max_size=12), st.integers(0, 4), st.integers(0, 6))
def test_both_sides_of_any_cut_are_the_whole(pieces, ends, document, line):
    blocks = [Block(data, end) for data, end in zip(pieces, ends, strict=False)]
    parts = [list(_side(iter(blocks), Cut(document, line), held)) for held in (False, True)]
    assert b"".join(block.data for part in parts for block in part) == b"".join(pieces)


def test_the_last_lines_of_one_file_are_held_out(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"line {i}\n" for i in range(100, 200)))
    train, held = hold_out([path], DataSettings(), 0.1)
    assert b"".join(block.data for block in held.blocks()).startswith(b"line 190\n")
    assert b"".join(block.data for block in train.blocks()).endswith(b"line 189\n")
    assert [block.ends_document for block in train.blocks()][-1]


def test_many_files_are_held_out_whole(tmp_path):
    for number in range(60):
        (tmp_path / f"{number:02}.txt").write_text("one line\nand another\n")
    train, held = hold_out([tmp_path], DataSettings(), 0.1)
    assert len(list(held.blocks())) == 6
    assert len(list(train.blocks())) == 54


@settings(max_examples=20)
@given(st.integers(2, 50), st.floats(0.01, 0.5))
def test_each_side_has_something(tmp_path_factory, lines, share):
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_text("a word\n" * lines)
    for part in hold_out([path], DataSettings(), share):
        assert sum(len(block.data) for block in part.blocks()) >= 7


def test_one_line_cannot_be_split(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("only this\n")
    with pytest.raises(DataError, match="too short"):
        hold_out([path], DataSettings())


def test_a_second_reading_is_the_same(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("a b\n" * 30)
    train, _ = hold_out([path], DataSettings())
    first = [block.data for block in train.blocks()]
    digest = train.digest
    assert [block.data for block in train.blocks()] == first
    assert train.digest == digest


def test_a_text_is_cut_into_three_that_are_the_whole(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"line {i}\n" for i in range(1000)))
    train, test = hold_out([path], DataSettings(), 0.2, most=900)
    train, tune = divide(train, 0.1)
    parts = [b"".join(block.data for block in part.blocks()) for part in (train, tune, test)]
    assert b"".join(parts) == path.read_bytes()
    assert 800 <= len(parts[2]) <= 910
    assert 0.08 < len(parts[1]) / len(parts[0]) < 0.12

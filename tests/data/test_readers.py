"""Good input: every format gives the same text, in bounded blocks."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_files import write

from nextword.data import paths, plain, readers
from nextword.data.paths import resolve, same_file
from nextword.data.readers import read
from nextword.data.settings import DataSettings

TEXT = "the cat\nsat \u00a0on\n\n日本語 mat"


def texts(path: Any, **values: Any) -> list[str]:
    return [block.data.decode() for block in read(path, DataSettings(**values))]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "noending"])
def test_text_and_gzip_are_told_apart_by_content(name: str, packed: bool, tmp_path: Path) -> None:
    content = gzip.compress(TEXT.encode()) if packed else TEXT.encode()
    reader = read(write(tmp_path / name, content))
    (block,) = reader
    assert block.data.decode() == TEXT
    assert (block.ends_document, block.source, block.line) == (True, str(tmp_path / name), 1)
    assert (reader.bytes, reader.lines, reader.documents) == (len(TEXT.encode()), 4, 1)
    odd = name.endswith(".gz") and not packed
    assert [("plain text although" in note.message) for note in reader.notes] == ([True] if odd else [])


def test_several_gzip_members_are_one_text(tmp_path: Path) -> None:
    content = gzip.compress(b"a\n") + gzip.compress(b"b\n") + b"\0" * 10
    assert texts(write(tmp_path / "a.gz", content)) == ["a\nb\n"]


@settings(max_examples=50)
@given(st.text(st.sampled_from("ab é日😀\n \r"), max_size=200), st.integers(8, 40))
def test_blocks_are_small_whole_characters_and_lose_nothing(
    tmp_path_factory: Any, text: str, size: int
) -> None:
    path = write(tmp_path_factory.mktemp("b") / "a.txt", "start\n" + text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "BLOCK", size)
        patch.setattr(paths, "PIECE", 4)
        blocks = list(read(path, raw=True))
    assert b"".join(block.data for block in blocks) == ("start\n" + text).encode()
    assert [block.ends_document for block in blocks] == [False] * (len(blocks) - 1) + [True]
    line = 1
    for block in blocks:
        block.data.decode()
        assert len(block.data) < size + 4
        assert block.line == line
        line += block.data.count(b"\n")


def test_crlf_becomes_a_line_end_in_training_and_stays_in_evaluation(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "a\r\nb\r\n")
    assert texts(path) == ["a\nb\n"]
    assert texts(path, newlines="keep") == ["a\r\nb\r\n"]
    reader = read(path, raw=True)
    assert [block.data for block in reader] == [b"a\r\nb\r\n"]
    assert "2 lines end in CRLF, kept" in reader.notes[0].message


def test_byte_order_marks_are_left_out_at_line_starts_only(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "\ufeffone\n\ufefftwo \ufeff three\n")
    reader = read(path)
    assert [block.data.decode() for block in reader] == ["one\ntwo \ufeff three\n"]
    assert ["byte order mark" in note.message for note in reader.notes] == [True, True]


def test_a_byte_order_mark_at_the_start_of_a_later_block_is_left_out(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(plain, "BLOCK", 8)
    monkeypatch.setattr(paths, "PIECE", 4)
    assert "".join(texts(write(tmp_path / "a.txt", "wordword\n\ufeffnext\n"))) == "wordword\nnext\n"


def test_other_line_separators_stay_inside_a_line(tmp_path: Path) -> None:
    reader = read(write(tmp_path / "a.txt", "a\u2028b\u0085c\vd\fe\n"))
    assert [block.data.decode() for block in reader] == ["a\u2028b\u0085c\vd\fe\n"]
    assert reader.lines == 1


def test_mixed_accents_get_a_note(tmp_path: Path) -> None:
    reader = read(write(tmp_path / "a.txt", "é e\u0301\n"))
    list(reader)
    assert "1 accents are separate characters" in reader.notes[0].message


def test_json_lines_give_one_document_a_record(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "a\\nb", "id": 1}\r\n\n"plain"\n{"text": "\\u00e9\\r\\n"}')
    blocks = list(read(path))
    assert [(block.data.decode(), block.ends_document, block.line) for block in blocks] == [
        ("a\nb", True, 1),
        ("plain", True, 3),
        ("é\n", True, 4),
    ]
    assert texts(write(tmp_path / "b.ndjson", '{"t": "x", "b": "y"}\n'), text_column="t,b") == ["x\ny"]


def test_null_is_no_text_in_json_lines_and_in_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"text": ["a", None, "b"]}), tmp_path / "a.parquet")
    write(tmp_path / "a.jsonl", '{"text": "a"}\n{"text": null}\n{"text": "b"}\n')
    write(tmp_path / "b.jsonl", '"a"\nnull\n"b"\n')
    for name in ("a.jsonl", "b.jsonl", "a.parquet"):
        reader = read(tmp_path / name)
        assert [block.data for block in reader] == [b"a", b"", b"b"]
        assert [note.message.split(": ")[1] for note in reader.notes] == [
            "1 records have no text (null) and were read as empty"
        ]
    two = write(tmp_path / "c.jsonl", '{"t": null, "b": "y"}\n')
    assert texts(two, text_column="t,b") == ["y"]


def test_a_json_line_may_span_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "BLOCK", 16)
    monkeypatch.setattr(paths, "PIECE", 8)
    assert texts(write(tmp_path / "a.jsonl", '"' + "word " * 30 + '"\n"b"\n')) == ["word " * 30, "b"]


@pytest.mark.parametrize(
    ("name", "content", "values", "expected"),
    [
        ("a.csv", 'id,text\n1,"a, ""b""\nc"\n2,d\n', {}, ['a, "b"\nc', "d"]),
        ("a.csv", "one line\nanother\n", {}, ["one line", "another"]),
        ("a.csv", "text\nx\n\ny\n", {}, ["x", "y"]),
        ("a.tsv", 'ham\tsaid "hi\nspam\tok\n', {"text_column": "2"}, ['said "hi', "ok"]),
        (
            "a.tsv",
            "1\tT\tB\n2\tU\tC\n",
            {"columns": "id,title,body", "text_column": "title,body"},
            ["T\nB", "U\nC"],
        ),
        ("a.tsv", "title\tbody\nT\tB\n", {"text_column": "body"}, ["B"]),
        ("a.tsv", "x\ty\n", {"columns": "label,text"}, ["y"]),
        ("a.tsv", "whole line\ta\n", {"format": "text"}, ["whole line\ta\n"]),
        ("a.csv.gz", gzip.compress(b"text\nx\n", mtime=0), {}, ["x"]),
    ],
)
def test_tables_give_the_text_columns(
    name: str, content: Any, values: Any, expected: list[str], tmp_path: Path
) -> None:
    assert texts(write(tmp_path / name, content), **values) == expected


def test_rows_are_counted_by_the_lines_they_begin_on(tmp_path: Path) -> None:
    blocks = list(read(write(tmp_path / "a.csv", 'text\n"a\nb"\nc\n')))
    assert [block.line for block in blocks] == [2, 4]


def _parquet(path: Path, columns: dict[str, list[Any]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    return path


def test_parquet_gives_one_document_a_row(tmp_path: Path) -> None:
    path = _parquet(
        tmp_path / "a.parquet", {"text": ["a\nb", None, "é"], "title": ["T", "U", "V"], "n": [1, 2, 3]}
    )
    assert texts(path) == ["a\nb", "", "é"]
    assert texts(path, text_column="title,text") == ["T\na\nb", "U", "V\né"]
    assert texts(_parquet(tmp_path / "b.parquet", {"only": ["x"]})) == ["x"]


@pytest.mark.parametrize(
    ("columns", "values", "message"),
    [
        ({"txt": ["a"], "n": [1]}, {}, "no column 'text'; did you mean 'txt'"),
        ({"text": ["a\0"]}, {}, "row 1: the text contains a NUL"),
        ({"text": [""]}, {}, "no row of this table contains any text"),
        ({"n": [5]}, {"text_column": "n"}, "row 1: the column contains int, not text"),
    ],
)
def test_parquet_without_text_is_said(columns: Any, values: Any, message: str, tmp_path: Path) -> None:
    path = _parquet(tmp_path / "a.parquet", columns)
    with pytest.raises(Exception, match=message):
        texts(path, **values)


def test_folders_are_read_in_order_and_skip_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, content in (
        ("b.txt", "2"),
        ("a.md", "1"),
        ("sub/c.jsonl", '"3"'),
        (".hidden.txt", "x"),
        ("d.bin", "x"),
    ):
        write(tmp_path / name, content)
    (tmp_path / "sub" / "up").symlink_to(tmp_path)
    assert texts(tmp_path) == ["1", "2", "3"]
    assert texts(str(tmp_path / "**" / "*.txt")) == ["2"]
    assert texts([tmp_path / "b.txt", tmp_path / "a.md"]) == ["2", "1"]


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(b"from a pipe\n")

    monkeypatch.setattr(sys, "stdin", Stdin())
    reader = read("-")
    assert reader.size is None
    (block,) = reader
    assert (block.data, block.source) == (b"from a pipe\n", "standard input")
    with pytest.raises(RuntimeError, match="read only once"):
        iter(reader)


def test_a_named_pipe_is_read_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=write, args=(tmp_path / "pipe", "through a pipe\n"))
    writer.start()
    reader = read(tmp_path / "pipe")
    assert reader.size is None
    assert [block.data for block in reader] == [b"through a pipe\n"]
    writer.join()


def test_a_large_file_is_read_ahead_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"some words in a line\n" * 200
    path = write(tmp_path / "a.txt", data)
    monkeypatch.setattr(plain, "BLOCK", 1000)
    monkeypatch.setattr(paths, "PIECE", 100)
    monkeypatch.setattr(readers, "_AHEAD", 0)
    reader = read(path, digest=True)
    assert b"".join(block.data for block in reader) == data
    assert reader.digest == hashlib.sha256(data + b"\0").hexdigest()
    assert read(path).digest == ""


def test_reading_can_be_left_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_AHEAD", 0)
    for block in read(write(tmp_path / "a.txt", "a\n")):
        assert block.data == b"a\n"
        break


def test_the_same_file_in_two_lists_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "a\n")
    (tmp_path / "b.txt").symlink_to(path)
    assert same_file(resolve(path), resolve(["-", tmp_path / "b.txt"])) == str(tmp_path / "b.txt")
    assert same_file(resolve(path), resolve("-")) is None


def test_a_large_ascii_text_and_a_large_other_one_are_checked_to_the_last_byte() -> None:
    from nextword.data.plain import first_invalid

    long = ("€" * 100_000).encode()
    assert first_invalid(long) is None
    assert first_invalid(b"x" * 262_143 + long) is None
    assert first_invalid(long + b"\xff") == len(long)
    assert first_invalid(b"x" * 262_142 + b"\xe2\x82") == 262_142
    assert first_invalid(b"x" * 262_142 + b"\xe2\x28\xa1" + long) == 262_142

"""Bad input, as a table: one sentence that names file, line and column, and says what to do."""

from __future__ import annotations

import gzip
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from nextword.core.errors import DataError, MissingPart
from nextword.data import paths, plain, tables
from nextword.data import paths as files
from nextword.data.readers import read
from nextword.data.settings import DataSettings

GZ = gzip.compress(b"hello world\n" * 1000, mtime=0)

# name, content, what the message says after the file's name
FILES: list[tuple[str, bytes, str]] = [
    ("invalid.txt", b"ok\nab\xff c\n", r":2:3: the byte 0xFF .byte 5 of the file. is not UTF-8"),
    ("overlong.txt", b"a\xc0\x80\n", r":1:2: the byte 0xC0 .*overlong"),
    ("overlong3.txt", b"a\xe0\x80\x80\n", r":1:2: the byte 0xE0 .*overlong"),
    ("cesu.txt", b"a \xed\xa0\xbd\xed\xb8\x80\n", r":1:3: the byte 0xED .*a surrogate"),
    ("utf16.txt", "ab".encode("utf-16"), r":1: this looks like UTF-16; convert it with: iconv"),
    ("utf16le.txt", "plain words\n".encode("utf-16-le"), r":1:2: this looks like UTF-16.*-f UTF-16LE"),
    ("utf16be.txt", "plain words\n".encode("utf-16-be"), r":1:1: this looks like UTF-16.*-f UTF-16BE"),
    ("nul.txt", b"a\0b\n", r":1:2: a NUL byte"),
    ("nuls.txt", b"abc\0\0\0\0\0\0\0\0def\n", r":1:4: a NUL byte"),
    ("lines.txt", b"a\0b\0c\0d\0e\nf\0g\0h\0i\0j\n", r":1:2: a NUL byte"),
    (
        "latin1.txt",
        "und\ncafé au lait\n".encode("latin-1"),
        r":2:4: .*Windows-1252 it reads 'café au lait'.*iconv",
    ),
    ("strange.txt", b"a \x81\x8d\n", r":1:3: the byte 0x81 .*convert the file to UTF-8"),
    ("nul.txt", b"a b\nc\0d\n", r":2:2: a NUL byte"),
    ("mac.txt", b"one\rtwo\rthree", r":1: the file has 0 newlines and 2 carriage returns"),
    ("empty.txt", b"", r": the file is empty and has no tokens"),
    ("blank.txt", b"\n \n\t\n", r": the file is blank .3 blank lines. and has no tokens"),
    ("bom.txt", b"\xef\xbb\xbf", r": the file is (blank|empty)"),
    ("page.txt", b"\n<!-- x --> <!DOCTYPE html>\n<html>", r":1: this looks like HTML"),
    (
        "lfs.txt",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n",
        r":1: this is a Git LFS pointer",
    ),
    ("cut.txt.gz", GZ[:30], r": the gzip file is cut off after byte 30"),
    ("cut.txt", GZ[:-4], r": the gzip file is cut off"),
    ("flip.gz", GZ[:20] + b"\xff\xff\xff" + GZ[23:], r": the gzip file is damaged"),
    ("tail.gz", GZ + b"garbage", r": the gzip file is damaged"),
    ("docs.txt", b"PK\x03\x04....", r": this is a ZIP archive"),
    ("x.txt", b"\x28\xb5\x2f\xfd....", r": this is a zstd archive"),
    ("a.jsonl", b'{"text": "ok"}\n\n{"text": \n', r":3:9: this line is not JSON"),
    ("b.jsonl", b'{"txt": "ok"}\n', r":1: there is no field 'text'; did you mean 'txt'\? Available: txt"),
    ("c.jsonl", b'{"text": 3}\n', r":1: the field 'text' is not a string but int"),
    ("d.jsonl", b'{"text": "a\\ud800"}\n', r":1: the text contains a lone surrogate .U\+D800."),
    ("e.jsonl", b'{"text": "a\\u0000"}\n', r":1: the text contains a NUL character"),
    ("f.jsonl", b'{"text": NaN}\n', r":1: this line is not JSON .NaN is not JSON."),
    ("g.jsonl", b'{"text": "a", "text": "b"}\n', r":1: this line is not JSON .duplicate key."),
    ("h.jsonl", b"[" * 100_000 + b"\n", r":1: this line is not JSON .it is nested too deeply."),
    ("i.jsonl", b"[1]\n", r":1: this line is neither a JSON object nor a string"),
    ("j.jsonl", b'{"text": ""}\n', r": no record of this file contains any text"),
    ("a.csv", b"id,body\n1,x\n", r":1: which of the 2 columns contains the text\?"),
    ("b.csv", b"id,text\n1,x\n2\n", r":3: this row has 1 columns, expected 2"),
    ("c.csv", b'id,text\n1,"x\n2,y\n', r":2: the table cannot be read here .unexpected end of data."),
    ("d.csv", b"\xff,text\n", r":1:1: the byte 0xFF"),
    ("a.tsv", b"1\tx\n", r":1: which of the 2 columns"),
    ("a.parquet", b"PAR1 no", r": this Parquet table cannot be read"),
]


@pytest.mark.parametrize(("name", "content", "message"), FILES, ids=[name for name, _, _ in FILES])
def test_a_bad_file_is_named_with_its_place(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(read(path))
    found = str(caught.value)
    assert found.startswith(str(path))
    assert re.match(message, found[len(str(path)) :]), found
    assert "\n" not in found


SETTINGS: list[tuple[str, bytes, dict[str, Any], str]] = [
    (
        "a.csv",
        b"id,body\n1,x\n",
        {"text_column": "bdy"},
        r":1: there is no column 'bdy'; did you mean 'body'",
    ),
    ("a.csv", b"id,body\n1,x\n", {"text_column": "3"}, r":1: 'data.text_column' is 3, but the row has 2"),
    ("a.tsv", b"1\tx\n", {"columns": "a,b,c"}, r":1: 'data.columns' names 3 columns, but the row has 2"),
    ("a.jsonl", b'{"a": "x"}\n', {"text_column": "a,b"}, r":1: there is no field 'b'"),
    ("a.txt", b"hello\n", {"format": "parquet"}, r": this Parquet table cannot be read"),
]


@pytest.mark.parametrize(("name", "content", "values", "message"), SETTINGS)
def test_a_setting_that_does_not_fit_is_said(
    name: str, content: bytes, values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=re.escape(name) + message):
        list(read(tmp_path / name, DataSettings(**values)))


def test_a_missing_file_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("a\n")
    with pytest.raises(
        DataError, match=r"corpsu\.txt: there is no such file; did you mean '.*corpus\.txt'\?"
    ):
        read(tmp_path / "corpsu.txt")
    with pytest.raises(DataError, match="there is no such file, nor the folder"):
        read(tmp_path / "none" / "zzz")
    with pytest.raises(DataError, match="no data was given"):
        read([])


def test_folders_patterns_and_links_that_lead_nowhere_are_said(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"a")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    for path, message in (
        (tmp_path, r"the folder contains no text; its files must end in .txt"),
        (tmp_path / "*.txt", "no file matches this pattern"),
        (tmp_path / "loop", "this is a loop of symbolic links"),
        (tmp_path / "gone", "a symbolic link to a file that does not exist"),
        (tmp_path / ("x" * 5000), "the file name is too long"),
        (tmp_path / "a\0b", "this cannot be read"),
    ):
        with pytest.raises(DataError, match=message):
            read(path)


def test_a_file_that_may_not_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.txt"
    path.write_text("a\n")

    def refuse(*args: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "open", refuse, raising=False)
    with pytest.raises(DataError, match=r"secret\.txt: permission denied; make the file readable"):
        list(read(path))


def test_a_disk_that_fails_while_reading_is_said(tmp_path: Path) -> None:
    class Failing:
        def read(self, size: int) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(DataError, match=r"this cannot be read .Input/output error."):
        files._read(Failing(), paths.Source("x"))  # type: ignore[arg-type]


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BOMB_BYTES", 1 << 20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"a b\n" * (1 << 20)))
    with pytest.raises(DataError, match=r"bomb\.gz: the gzip file grows to more than 200 times its size"):
        list(read(path))


def test_an_endless_record_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LINE_LIMIT", 1000)
    monkeypatch.setattr(plain, "BLOCK", 400)
    monkeypatch.setattr(files, "PIECE", 100)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'"' + b"x" * 3000 + b'"\n')
    with pytest.raises(DataError, match="one line is longer than"):
        list(read(path))


def test_a_folder_of_empty_files_has_no_token(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_bytes(b"\n")
    with pytest.raises(DataError, match="none of the 2 files contains any tokens"):
        list(read(tmp_path))
    (tmp_path / "c.txt").write_bytes(b"word\n")
    reader = read(tmp_path)
    assert b"".join(block.data for block in reader) == b"word\n"
    assert len(reader.notes) == 2
    assert "it was skipped" in reader.notes[0].message


def test_without_pyarrow_a_parquet_table_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPart, match=r"pip install 'nextword\[data\]'"):
        list(read(tmp_path / "a.parquet"))


def test_parquet_from_standard_input_is_refused() -> None:
    with pytest.raises(DataError, match="standard input: a Parquet table cannot be read from standard input"):
        list(read("-", DataSettings(format="parquet")))


def _on_error(tmp_path: Path, on_error: str) -> tuple[bytes, list[str]]:
    path = tmp_path / "x.txt"
    path.write_bytes(b"good\nb\xffd\xfe\nfine \xef\xbf\xbd\n")
    reader = read(path, DataSettings(on_error=on_error))  # type: ignore[arg-type]
    return b"".join(block.data for block in reader), [note.message for note in reader.notes]


def test_bad_bytes_can_be_replaced_or_their_lines_skipped_and_are_counted(tmp_path: Path) -> None:
    replaced, notes = _on_error(tmp_path, "replace")
    assert replaced.decode() == "good\nb\ufffdd\ufffd\nfine \ufffd\n"
    assert any("2 bytes that are not UTF-8 were replaced" in note for note in notes)
    assert any("1 replacement characters" in note for note in notes)
    skipped, notes = _on_error(tmp_path, "skip")
    assert skipped.decode() == "good\nfine \ufffd\n"
    assert any("1 lines that are not UTF-8 were skipped" in note for note in notes)


def test_a_file_name_that_is_no_utf8_works_and_is_shown_safely(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    with open(name, "wb") as file:
        file.write(b"\xff\n")
    with pytest.raises(DataError, match=r"caf\\xe9\.txt:1:1: the byte"):
        list(read(os.fsdecode(name)))

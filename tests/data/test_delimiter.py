"""Columns separated by commas, semicolons or tabs: found by the header and the rows, and said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from written_files import write

from nextword.core.errors import DataError
from nextword.data.readers import read
from nextword.data.settings import DataSettings

ROWS = [("id", "text"), ("1", "the cat"), ("2", "a dog"), ("3", "both")]
MARKS = {"comma": ",", "semicolon": ";", "tab": "\t"}


def _read(path: Path, **settings: Any) -> tuple[list[str], list[str]]:
    reader = read(path, DataSettings(**settings))
    found = [block.data.decode() for block in reader]
    return found, [note.message for note in reader.notes]


def _table(mark: str, rows: Any = ROWS) -> str:
    return "".join(mark.join(row) + "\n" for row in rows)


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("name", MARKS)
def test_the_header_shows_what_separates_columns(tmp_path: Path, name: str, ending: str) -> None:
    path = write(tmp_path / f"a.{ending}", _table(MARKS[name]))
    found, notes = _read(path)
    assert found == ["the cat", "a dog", "both"]
    usual = name == ("tab" if ending == "tsv" else "comma")
    assert [note.split("; ")[0] for note in notes] == (
        []
        if usual
        else [f"{path}: the columns are separated by {name}s, not {'commas' if ending == 'csv' else 'tabs'}"]
    )


def test_commas_in_the_text_of_a_semicolon_table_do_no_harm(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id;text\n1;hello, world\n2;yes\n3;a, b, c\n")
    assert _read(path)[0] == ["hello, world", "yes", "a, b, c"]
    quoted = write(tmp_path / "b.csv", 'id;text\n1;"a; ""b""\nc"\n2;d\n')
    assert _read(quoted)[0] == ['a; "b"\nc', "d"]


def test_rows_show_it_where_no_header_names_the_text(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "1;the cat\n2;a dog\n")
    assert _read(path, text_column="2")[0] == ["the cat", "a dog"]
    assert _read(path, columns="id,text")[0] == ["the cat", "a dog"]
    with pytest.raises(DataError, match=r"a\.csv:1: which of the 2 columns contains the text\?"):
        _read(path)


def test_a_row_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id;text\n1;hello; world\n")
    with pytest.raises(DataError, match=r"a\.csv:2: this row has 3 columns, expected 2"):
        _read(path)


def test_two_possible_separators_are_a_question(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a;b\tc\nd;e\tf\n")
    with pytest.raises(DataError, match=r":1: the columns may be separated by semicolons or tabs; say which"):
        _read(path)
    assert _read(path, delimiter="semicolon", text_column="2")[0] == ["b\tc", "e\tf"]
    assert _read(path, delimiter="tab", text_column="1")[0] == ["a;b", "d;e"]


@pytest.mark.parametrize(
    "text", ["one line\nanother\n", "text\na; b\nc\n", "one; line\n", "a; b; c\nd\ne; f\n"]
)
def test_one_column_of_prose_stays_one_column(tmp_path: Path, text: str) -> None:
    found, notes = _read(write(tmp_path / "a.csv", text))
    assert found == [line for line in text.splitlines() if line != "text"]
    assert notes == []


def test_the_setting_decides(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", _table(";"))
    assert _read(path, delimiter="comma") == (["id;text", "1;the cat", "2;a dog", "3;both"], [])


def test_a_long_table_is_judged_by_its_first_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id;text\n" + '1;"two\nlines"\n' * 500)
    assert _read(path)[0] == ["two\nlines"] * 500

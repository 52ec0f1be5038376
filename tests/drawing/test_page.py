"""Pages: nothing from a text is code, tables are for people, and a file is written whole or not at all."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core.errors import RunError
from nextword.drawing.page import Page, Table, shown

NAMES = st.text(max_size=12)


@given(NAMES, NAMES)
def test_a_page_holds_texts_as_texts(title, text):
    page = Page(title)
    page.text(text + "<img src=x onerror=alert(1)>")
    page.quotes(text, [text + "</blockquote><script>"])
    page.table(Table(("<b>",), ((text + "<i>",),)))
    page.heat(["<u>"], {"<s>": [1.0, None]}, 3.0)
    page.verdict(False, "<em>")
    for tag in ("<img", "<script", "<i>", "<u>", "<em>"):
        assert tag not in page.html()


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError):
        Page("t").save(tmp_path / "file" / "x.html")
    assert Page("t").save(tmp_path / "new" / "x.html").read_text().startswith("<!DOCTYPE html>")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["x.html"]


def test_cells_are_shown_as_people_read_them():
    assert [shown(v) for v in (None, True, 1234, 0.12345, 12345.6, math.inf, "x")] == [
        "-", "yes", "1,234", "0.1235", "12,346", "infinite", "x",
    ]  # fmt: skip


def test_a_table_prints_in_columns():
    table = Table(("name", "n"), (("a", 1), ("bcd", 1000)), "title")
    assert str(table) == "title\nname      n\na         1\nbcd   1,000"

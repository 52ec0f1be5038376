"""Pictures and pages: well-formed whatever the numbers and the names are, and nothing from a text is code."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core.contracts import END, START
from nextword.core.errors import RunError
from nextword.drawing.page import Page, Table, shown
from nextword.drawing.svg import Axis, Series, bars, histogram, lines, number, scatter
from nextword.evaluation.lm import orders
from nextword.ngram import estimation
from nextword.ngram.settings import NgramSettings

NAMES = st.text(max_size=12)
VALUES = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(
    st.lists(st.tuples(NAMES, st.lists(st.tuples(VALUES, VALUES), max_size=5)), max_size=12), st.booleans()
)
def test_plots_are_well_formed_for_any_numbers(data, log):
    series = [Series(name, tuple(points)) for name, points in data]
    for draw in (lines, scatter):
        svg = draw(series, "a <title>", Axis("x & y", log=log), Axis("y", log=log, zero=True))
        ElementTree.fromstring(svg)
        assert "nan" not in svg.split("<title>")[-1].split("</title>")[-1]


@given(st.lists(st.tuples(NAMES, VALUES), max_size=8))
def test_bars_are_well_formed_for_any_numbers(values):
    ElementTree.fromstring(bars(values, "t", "unit"))


def test_a_bar_has_the_length_of_its_number():
    svg = ElementTree.fromstring(bars([("a", 2.0), ("b", 1.0)], "t", "unit"))
    first, second = (float(each.get("width")) for each in svg.iter("{http://www.w3.org/2000/svg}rect"))
    assert first == pytest.approx(2 * second)


def test_numbers_are_short():
    assert [number(v) for v in (0, 0.1234, 12.34, 1234, 12_340, 5_600_000, 7.1e9, math.inf)] == [
        "0", "0.123", "12.3", "1,234", "12.3 k", "5.6 M", "7.1 G", "infinite",
    ]  # fmt: skip


def test_numbers_far_from_one_are_powers_of_ten():
    found = [number(v) for v in (1e41, 2.5e13, 1e-5, -3.25e-7, 0.001)]
    assert found == ["1e41", "2.5e13", "1e-5", "-3.25e-7", "0.001"]


def test_a_histogram_has_shares_that_sum_to_one():
    found = histogram([1, 2, 2, 9], 2.0)
    assert sum(share for _, share in found) == pytest.approx(1)
    assert found[0] == (1.0, 0.25)
    assert histogram([], 1.0) == ()


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


def packed(*sentences):
    return np.array([i for sentence in sentences for i in (START, *sentence, END)])


def test_unseen_shares_are_counted_as_by_hand():
    model = estimation.build(packed([3, 4, 5]), 7, NgramSettings(order=3, smoothing="backoff"))
    held = packed([3, 4, 4])  # words 3 4 4 END; bigrams <s>3 34 44 4</s>; trigrams <s>34 344 44</s>
    assert orders.unseen_shares(model, held) == pytest.approx([0, 2 / 4, 2 / 3])
    assert orders.unseen_shares(model, packed([6])) == pytest.approx([1 / 2, 1, 1])


def test_bytes_by_order_are_those_of_the_saved_arrays():
    ids = packed([3, 4, 5, 3, 4], [4, 4], [5])
    facts = list(orders.look(ids, ids, 6, 4))
    for each in facts:
        model = estimation.build(ids, 6, NgramSettings(order=each.n, smoothing="backoff"))
        assert each.bytes == model.trie.nbytes
    assert [each.unseen for each in facts] == [0, 0, 0, 0]


def test_a_sample_ends_at_the_end_of_a_sequence():
    ids = packed([3] * 5, [4] * 5, [5] * 5)
    assert list(orders.sample(ids, 16)) == list(packed([3] * 5, [4] * 5))
    assert len(orders.sample(ids, 100)) == len(ids)

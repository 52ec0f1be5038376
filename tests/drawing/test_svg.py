"""Plots, bars, whiskers and guides: well-formed whatever the numbers and names are, and to scale."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.drawing.svg import (
    HEIGHT,
    WIDTH,
    Axis,
    Guide,
    Series,
    bars,
    front,
    histogram,
    lines,
    number,
    scatter,
)

NAMES = st.text(max_size=12)
VALUES = st.floats(allow_nan=True, allow_infinity=True, width=32)
REAL = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=6), st.booleans())
def test_whiskers_are_well_formed_for_any_numbers(rows, log):
    points, spreads = tuple((x, y) for x, y, _ in rows), tuple(s for _, _, s in rows)
    svg = lines([Series("a", points, spreads=spreads)], "t", Axis("x", log=log), Axis("y", log=log))
    ElementTree.fromstring(svg)
    assert not re.search(r'd="[^"]*(nan|inf)', svg)


@given(REAL, REAL, st.booleans())
def test_a_guide_lies_inside_the_picture(at, y, upright):
    series = Series("a", ((0.0, 0.0), (1.0, y)))
    svg = lines([series], "t", Axis("x"), Axis("y"), [Guide(at, "<here>", upright)])
    ElementTree.fromstring(svg)
    (path,) = re.findall(r'class="guide" d="M([-\d.]+) ([-\d.]+)', svg)
    assert 0 <= float(path[0]) <= WIDTH
    assert 0 <= float(path[1]) <= HEIGHT
    assert "&lt;here&gt;" in svg


def test_a_whisker_is_as_long_as_its_number_says():
    series = Series("a", ((0.0, 0.0), (1.0, 10.0)), spreads=(0.0, 5.0))
    svg = lines([series], "t", Axis("x"), Axis("y"))
    (low, high) = re.findall(r'class="whisker"[^>]*d="M[\d.]+ ([\d.]+)V([\d.]+)', svg)[0]
    (points,) = re.findall(r'class="line"[^>]*d="M[\d.]+ ([\d.]+)L[\d.]+ ([\d.]+)"', svg)
    unit = (float(points[0]) - float(points[1])) / 10
    assert float(low) - float(high) == pytest.approx(10 * unit, abs=0.3)


@given(
    st.lists(st.tuples(NAMES, st.lists(st.tuples(VALUES, VALUES), max_size=5)), max_size=12), st.booleans()
)
def test_plots_are_well_formed_for_any_numbers(data, log):
    series = [Series(name, tuple(points)) for name, points in data]
    for draw in (lines, scatter):
        svg = draw(series, "a <title>", Axis("x & y", log=log), Axis("y", log=log, zero=True))
        ElementTree.fromstring(svg)
        places = re.findall(r' (?:d|x|y|width|height)="([^"]*)"', svg)  # a name may be nan, a place may not
        assert not any("nan" in each for each in places)


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


def test_the_front_holds_those_that_no_other_beats_in_both():
    assert front([(1, 5), (2, 4), (3, 4.5), (4, 1), (4, 0.5)]) == [(1, 5), (2, 4), (4, 0.5)]
    assert front([(1, 1), (1, 2), (2, 1)]) == [(1, 1)]


def test_names_beside_points_do_not_cover_each_other():
    series = [Series(f"model {i}", ((1.0 + i * 1e-4, 2.0 + i * 1e-4),)) for i in range(4)]
    drawn = scatter(series, "t", Axis("x"), Axis("y"))
    places = re.findall(r'<text class="name" x="([\d.]+)" y="([\d.]+)"', drawn)
    assert len(set(places)) == 4

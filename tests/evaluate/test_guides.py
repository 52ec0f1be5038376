"""Whiskers and guides: well-formed whatever the numbers are, and inside the picture."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.drawing.svg import HEIGHT, WIDTH, Axis, Guide, Series, lines

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

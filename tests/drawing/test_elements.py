"""New pictures are well formed whatever they hold, and letters that join stay together."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nextword.drawing import raster
from nextword.drawing.coloured import coloured
from nextword.drawing.elements import glyphs, share_of, shortened, width_of
from nextword.drawing.heat import Names, heat, thumbnails
from nextword.drawing.plane import plane
from nextword.drawing.standalone import Picture, standalone, wrapped
from nextword.drawing.tree import Node, tree

TEXTS = st.text(max_size=8)
VALUES = st.floats(allow_nan=True, allow_infinity=True, width=32)


@given(st.lists(st.tuples(TEXTS, VALUES), min_size=1, max_size=12))
def test_coloured_text_is_well_formed(pairs):
    ElementTree.fromstring(
        coloured([text for text, _ in pairs], [value for _, value in pairs], "a <b>", "x & y")
    )


@given(arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 5)), elements=VALUES), TEXTS)
def test_maps_are_well_formed(values, name):
    rows, columns = (Names(name, [name] * size) for size in values.shape)
    ElementTree.fromstring(heat(values, rows, columns, name, name))
    ElementTree.fromstring(thumbnails([[values]], name, "layer", "head", "share"))


def test_a_large_map_is_small_on_disk():
    values = np.random.default_rng(0).random((100, 100))
    names = Names("word", ["x"] * 100)
    svg = heat(values, names, names, "t", "share")
    assert len(svg) < 600_000
    ElementTree.fromstring(svg)


@given(st.lists(st.complex_numbers(max_magnitude=1e3), max_size=9))
def test_planes_are_well_formed(values):
    ElementTree.fromstring(plane([("W", values), ("U", values)], "t"))


@given(st.lists(st.tuples(st.integers(-1, 30), TEXTS), min_size=1, max_size=15))
def test_trees_are_well_formed(pairs):
    nodes = [Node(min(parent, place - 1), text, "0.1") for place, (parent, text) in enumerate(pairs)]
    ElementTree.fromstring(tree(nodes, "<s>", "t", "step"))


def test_letters_that_join_are_one():
    assert glyphs(["र", "ा", "म"]) == [[0, 1], [2]]
    assert glyphs(["क", "्", "ष"]) == [[0, 1, 2]]
    assert glyphs(["a", "b"]) == [[0], [1]]
    assert glyphs(["", "", "राम", "x"]) == [[0, 1, 2], [3]]
    assert glyphs([""]) == [[0]]
    assert glyphs([]) == []


def test_shares_of_a_range():
    assert share_of(-2.0, -2.0, 2.0) == -1
    assert share_of(1.0, -4.0, 4.0) == 0.25
    assert share_of(3.0, 1.0, 5.0) == 0.5
    assert share_of(9.0, 1.0, 5.0) == 1
    assert share_of(1.0, 1.0, 1.0) == 0
    assert share_of(-1.0, -2.0, 0.0) == -0.5


def test_widths_grow_with_the_script():
    assert width_of("你好") > width_of("ab") > width_of("ii")
    assert width_of("e\u0301") == width_of("e")
    assert shortened("short", 100) == "short"
    assert shortened("a very long name", 50).endswith("…")
    assert width_of(shortened("a very long name", 50)) <= 50


def test_a_file_of_pictures_has_its_own_style_and_all_of_them():
    svg = heat(np.eye(2), Names("r", ["a", "b"]), Names("c", ["d", "e"]), "t", "share")
    made = standalone([Picture(svg, "first", "a caption " * 40), Picture(svg, "second")], "both")
    root = ElementTree.fromstring(made)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"both", "first", "second"} <= set(texts)
    assert "prefers-color-scheme:dark" in made
    assert len(wrapped("a caption " * 40, 680)) > 2


@pytest.mark.parametrize(
    ("path", "points", "codes"),
    [
        ("M1 2H5V6", [(1, 2), (5, 2), (5, 6)], [1, 2, 2]),
        ("M1 2h3v-1z", [(1, 2), (4, 2), (4, 1), (4, 1)], [1, 2, 2, 79]),
        ("M0 0L1 1L2 0", [(0, 0), (1, 1), (2, 0)], [1, 2, 2]),
        ("M0 0l1 2m1 1h1", [(0, 0), (1, 2), (2, 3), (3, 3)], [1, 2, 1, 2]),
    ],
)
def test_paths_are_followed(path, points, codes):
    assert raster.outline(path) == (points, codes)


def test_half_circles_meet_their_ends():
    points, codes = raster.outline("M-2.0 0.0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0z")
    assert points[8] == pytest.approx((2.0, 0.0))
    assert points[16] == pytest.approx((-2.0, 0.0))
    assert {round(x * x + y * y, 6) for x, y in points} == {4.0}
    assert codes[-1] == 79

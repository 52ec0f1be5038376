"""The height of a page is that of what it shows."""

import re

from nextword.drawing.height import height
from nextword.drawing.page import Page, Table

SVG = '<svg role="img" viewBox="0 0 720 300"><title>t</title><text>words in a picture</text></svg>'


def page(*parts):
    made = Page("a title")
    made.parts += parts
    return made


def test_pictures_tables_and_text_add_up():
    empty = height(page().html())
    assert 200 > empty > 90
    assert height(page(SVG).html()) == empty + 300
    half = SVG.replace("720 300", "360 150")  # pictures are as wide as the page
    assert height(page(half).html()) == empty + 300
    short, long = page(), page()
    short.text("word " * 10)
    long.text("word " * 200)
    assert height(long.html()) > height(short.html()) + 200
    table = page()
    table.table(Table(("a", "b"), [(i, i) for i in range(10)]))
    assert height(table.html()) > empty + 300


def test_closed_details_take_one_line():
    table = Table(("a",), [(i,) for i in range(100)])
    with_numbers, without = page(), page()
    with_numbers.picture(SVG, "caption", table)
    without.picture(SVG, "caption")
    assert 0 < height(with_numbers.html()) - height(without.html()) < 40


def test_frame_of_a_notebook_is_as_high_as_its_page():
    for made in (page(), page(SVG, SVG, SVG)):
        assert f"height:{height(made.html())}px" in re.search(r'style="([^"]*)"', made.fragment())[1]

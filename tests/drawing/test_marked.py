"""Marked text: any script, labels as text, nothing of a corpus becomes markup."""

import pytest

from nextword.drawing.marked import Mark, Weight, answer, legend, marked, weighted


def words_of(html):
    """What a reader sees."""
    import re
    from html import unescape

    return unescape(re.sub(r"<b>.*?</b>|<[^>]*>", "", html))


@pytest.mark.parametrize(
    "text", ["Ann likes New York.", "राम ने नई दिल्ली को देखा।", "李明喜欢北京。", "a <b>&\u202e x"]
)
def test_the_text_is_whole_between_and_inside_marks(text):
    marks = [Mark(0, 2, "x", 0, 0.95), Mark(4, 6, "<y>", 1, 0.3)]
    html = marked(text, marks)
    assert words_of(html) == text.replace("\u202e", "\\u202e")
    assert "&lt;y&gt;" in html
    assert "<y>" not in html


def test_confidence_is_drawn():
    sure, unsure, guess = (marked("a", [Mark(0, 1, "x", 0, p)]) for p in (0.95, 0.7, 0.2))
    assert 'class="m"' in sure
    assert "m unsure" in unsure
    assert "m guess" in guess
    assert '--p:0.20" title="x 20.0%"' in guess


def test_labels_have_colours_of_their_own():
    html = legend([f"l{n}" for n in range(12)])
    hues = {part.split('"')[0] for part in html.split("--h:")[1:13]}
    assert len(hues) == 12


def test_numbers_colour_words():
    html = weighted("no fun", [Weight(0, 2, 1.0, "no: +2"), Weight(3, 6, -0.5, "fun: -1")])
    assert words_of(html) == "no fun"
    assert "rgba(var(--hot),0.80)" in html
    assert "rgba(var(--cold)," in html
    assert 'title="fun: -1"' in html
    assert "<b>&lt;x&gt;</b> 93.0%" in answer("<x>", 0.93)

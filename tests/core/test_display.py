"""Values are shown as people read them, and what is shown can neither steer a terminal nor a page."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core.display import about, markup, printable, show_number, show_size


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb\x07", "a\\rb\\x07"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("left\u202eright", "left\\u202eright"),
        ("one\u2028line", "one\\u2028line"),
        ("family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"),
        ("lone \udcff", "lone \\udcff"),
    ],
)
def test_unsafe_characters_are_written_out(text, shown):
    assert printable(text) == shown


@given(st.text())
def test_printable_text_holds_no_control_but_tab_and_newline(text):
    assert not [c for c in printable(text) if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]


@given(st.text())
def test_markup_holds_no_tag(text):
    assert "<" not in markup(text)
    assert '"' not in markup(text)


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (1090.158, 2, "1,090.16"),
        (2.29144, 4, "2.2914"),
        (999_999_999.0, 2, "999,999,999.00"),
        (6_615_864_777_159_000_064.0, 2, "6.6e+18"),
        (math.inf, 2, "infinite"),
        (math.nan, 2, "not a number"),
    ],
)
def test_number_is_shown_with_the_digits_that_mean_something(value, digits, shown):
    assert show_number(value, digits) == shown


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (12_300_000, "12.3 MB"), (5e15, "5e+03 TB")]
)
def test_size_is_shown_with_its_unit(count, text):
    assert show_size(count) == text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.3, "about 5 s"),
        (22, "about 20 s"),
        (58, "about 1 minute"),
        (260, "about 4 minutes"),
        (3 * 3600, "about 3 hours"),
        (13_000, "about 3.6 hours"),
        (900_000, "about 10 days"),
        (math.inf, "an unknown time"),
    ],
)
def test_estimate_is_rounded_to_what_is_worth_saying(seconds, said):
    assert about(seconds) == said

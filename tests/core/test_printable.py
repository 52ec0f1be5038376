"""What is shown can neither steer a terminal nor a page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.core.printable import markup, printable


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

"""The word splitter: treebank clitics, scripts without spaces, places in the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nextword.text.splitter import pieces, split


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("She doesn't like it.", ["She", "does", "n't", "like", "it", "."]),
        ("It’s Smith's", ["It", "’s", "Smith", "'s"]),
        ("the U.S. paid 3.5% at 10:30", ["the", "U.S.", "paid", "3.5%", "at", "10:30"]),
        ("see http://a.b/c?d=1, or me@x.org", ["see", "http://a.b/c?d=1", ",", "or", "me@x.org"]),
        ("@bob likes #fun!!", ["@bob", "likes", "#fun", "!!"]),
        ("राम ने रावण को मारा।", ["राम", "ने", "रावण", "को", "मारा", "।"]),
        ("我喜欢书。", ["我", "喜", "欢", "书", "。"]),
        ("well-known o'clock", ["well-known", "o'clock"]),
        ("", []),
    ],
)
def test_words(text, words):
    assert split(text) == words


@given(st.text())
def test_nothing_but_white_space_lies_between_pieces(text):
    found = pieces(text)
    assert [piece.text for piece in found] == [text[piece.start : piece.end] for piece in found]
    rest, at = [], 0
    for piece in found:
        rest.append(text[at : piece.start])
        at = piece.end
    assert not "".join([*rest, text[at:]]).strip()

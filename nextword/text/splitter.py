"""Raw text into words, for taggers and classifiers: the splitter of `nextword predict`.

Words are runs of letters and digits; punctuation marks stand alone; English clitics are cut off as treebanks
do (do n't, she 's); Chinese, Japanese and Thai characters, which are written without spaces, stand alone; web
addresses, @names, #tags, times and numbers stay whole.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_CLITIC = r"n[’']t\b|[’'](?:s|m|d|re|ve|ll)\b"
_ALONE = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PATTERN = re.compile(
    rf"""
      (?:https?://|www\.)\S*[^\s.,;:!?)\]}}'"]            # addresses
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+                        # e-mail
    | [@\#]\w+                                            # names and tags
    | \d+(?:[.,:/]\d+)*(?:st|nd|rd|th|%)?(?![^\W_])       # numbers, times, dates
    | {_CLITIC}
    | (?:[^\W\d_]\.){{2,}}                                # U.S.
    | [{_ALONE}]                                          # written without spaces
    | (?:(?!{_CLITIC})(?![{_ALONE}])[\w\u0300-\u036f\u0900-\u0903\u093a-\u094f\u200c\u200d])+
      (?:[-’'](?!(?:s|m|d|re|ve|ll|t)\b)(?![{_ALONE}])\w+)*   # words, with hyphens inside
    | \.{{2,}}|-{{2,}}|[!?]{{2,}}                         # runs of marks
    | \S                                                  # any other mark
    """,
    re.VERBOSE | re.IGNORECASE,
)


class Piece(NamedTuple):
    """A word and where it stands in the text."""

    text: str
    start: int
    end: int


def pieces(text: str) -> list[Piece]:
    """Split a text into words with their places; nothing but whitespace lies between them."""
    return [Piece(found[0], found.start(), found.end()) for found in _PATTERN.finditer(text)]


def split(text: str) -> list[str]:
    """Split a text into words."""
    return _PATTERN.findall(text)

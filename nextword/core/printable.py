"""Text as it may be shown: control characters and changes of direction are written out, never sent.

A corpus may hold terminal escape codes and bidirectional overrides; neither a terminal nor a page gets them.
"""

from __future__ import annotations

import html
import re

# Controls but tab and newline, line separators, bidirectional marks and overrides, and lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with every unsafe character as its escape, such as ``\\x1b``."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def markup(text: str) -> str:
    """The text for a page: printable, and with no character that HTML reads."""
    return html.escape(printable(text), quote=True)

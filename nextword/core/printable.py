"""Text made safe to display: control characters and bidirectional overrides are shown as escapes.

A corpus may contain terminal escape codes and bidirectional overrides; they must reach no terminal or page.
"""

from __future__ import annotations

import html
import re

# Controls other than tab and newline, line separators, bidirectional marks and overrides, lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return the text with every unsafe character replaced by its escape, such as ``\\x1b``."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def markup(text: str) -> str:
    """Return the text for an HTML page: printable, with HTML's special characters escaped."""
    return html.escape(printable(text), quote=True)

r"""Where subwords may begin and end: the patterns that split a text before its subwords are found.

A subword never goes past the end of a match of the pattern. Qwen2's pattern (Bai et al. 2023) takes digits
one by one, and no match of it goes past a line end into what is visible, so a text can be cut after line
ends, and long lines inside, without changing a single id: what is stored is all that another program needs.
GPT-2's (Radford et al. 2019) does go past them: there the cut is part of the tokenizer, and stays as it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_WHITE = (  # the whitespace of Unicode in UTF-8
    rb"[\t-\r ]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80"
)


@dataclass(frozen=True)
class Pattern:
    """A pattern, and where a text is cut: a match of `line_end` or `inside` ends at the place."""

    regex: str | None  # in the library's syntax; None: GPT-2's, which the library has under a name
    line_end: re.Pattern[bytes]
    inside: re.Pattern[bytes]  # of a very long line


PATTERNS = {
    "gpt2": Pattern(
        None,
        line_end=re.compile(rb"\n(?=[^ \t\v\f\r\n])"),
        inside=re.compile(rb"[A-Za-z](?= [A-Za-z])"),
    ),
    # Cut before a space that follows something visible, after a digit, and where letters end.
    "qwen2": Pattern(
        QWEN2,
        line_end=re.compile(rb"\n(?!" + _WHITE + rb")(?=[\x00-\xff])"),
        inside=re.compile(
            rb"(?!" + _WHITE + rb")(?:[!-~]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2})(?= )|[0-9]"
            rb"|[A-Za-z](?=[!-/:-@\[-`{-~])|(?:[\xe5-\xe8][\x80-\xbf]|\xe3\x81)[\x81-\xbf](?=\xe3\x80[\x81\x82])"
        ),
    ),
}

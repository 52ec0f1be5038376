"""Turn ids into text as they are generated: nothing is emitted before it is certain.

A multi-byte character may span several tokens; part of it is never emitted.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

from nextword.core.contracts import END, START


class JoinedDecoder:
    """Joins words by one space, or characters by nothing."""

    def __init__(self, word: Callable[[int], str], between: str) -> None:
        self._word, self._between, self._begun = word, between, False

    def push(self, index: int) -> str:
        """Return the word with the space before it; START and END give nothing."""
        if index in (START, END):
            return ""
        before = self._between if self._begun else ""
        self._begun = True
        return before + self._word(index)

    def flush(self) -> str:
        """Return nothing: a word is certain at once."""
        return ""


class ByteDecoder:
    """Decodes tokens made of bytes into whole characters; invalid bytes become U+FFFD."""

    def __init__(self, data: Callable[[int], bytes]) -> None:
        self._data = data
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, index: int) -> str:
        """Return the characters that are complete after this id."""
        return self._decoder.decode(self._data(index))

    def flush(self) -> str:
        """Return U+FFFD if a character is incomplete."""
        return self._decoder.decode(b"", final=True)

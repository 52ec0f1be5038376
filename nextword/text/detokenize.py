"""Ids to text while they are made: nothing is shown before it is certain.

A character of several bytes may come as several tokens; half of it is never shown.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

from nextword.core.contracts import END, START


class JoinedDecoder:
    """Words, joined by one space; characters, joined by nothing."""

    def __init__(self, word: Callable[[int], str], between: str) -> None:
        self._word, self._between, self._begun = word, between, False

    def push(self, index: int) -> str:
        """The word with the space before it; START and END show nothing."""
        if index in (START, END):
            return ""
        before = self._between if self._begun else ""
        self._begun = True
        return before + self._word(index)

    def flush(self) -> str:
        """Nothing waits: a word is certain at once."""
        return ""


class ByteDecoder:
    """Tokens that are bytes: whole characters only; bytes that are none become U+FFFD."""

    def __init__(self, data: Callable[[int], bytes]) -> None:
        self._data = data
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, index: int) -> str:
        """The characters that are complete after this id."""
        return self._decoder.decode(self._data(index))

    def flush(self) -> str:
        """U+FFFD where a character was begun and not ended."""
        return self._decoder.decode(b"", final=True)

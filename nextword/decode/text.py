"""Text as it comes: the incremental detokenizer of one row, which withholds what may be a stop text.

A reader never sees a broken character, nor the first letters of a stop text that then completes.
"""

from __future__ import annotations

from collections.abc import Sequence

from nextword.core.contracts import END, Tokenizer


class TextStream:
    """The text of one row after its prompt."""

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int] = (), stop: Sequence[str] = ()) -> None:
        self._decoder = tokenizer.decoder()
        for word in prompt:  # a token after the prompt starts with a space
            self._decoder.push(int(word))
        self._stop = tuple(stop)
        self._held = ""
        self.stopped = False

    def push(self, word: int) -> str:
        """Read one token and return the text that can be shown now. END shows nothing."""
        return "" if word == END or self.stopped else self._release(self._decoder.push(int(word)))

    def flush(self) -> str:
        """Return what is left when the row is finished."""
        if self.stopped:
            return ""
        rest = self._release(self._decoder.flush()) + self._held
        self._held = ""
        return rest

    def _release(self, new: str) -> str:
        """Return everything up to a stop text, or up to what may become one."""
        if not self._stop:
            return new
        text = self._held + new
        ends = [place for string in self._stop if (place := text.find(string)) >= 0]
        if ends:
            self.stopped, self._held = True, ""
            return text[: min(ends)]
        keep = max((self._overlap(text, string) for string in self._stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    @staticmethod
    def _overlap(text: str, string: str) -> int:
        """Return how many of the last characters are a beginning of the string."""
        longest = min(len(text), len(string) - 1)
        return next((size for size in range(longest, 0, -1) if text.endswith(string[:size])), 0)

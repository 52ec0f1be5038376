"""The words of a text that a tokenizer does not know, by name: a user may have mistyped them."""

from __future__ import annotations

from nextword.core.contracts import SPECIALS, UNKNOWN, Tokenizer

_NAMED = 5


def unknown_words(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the words, or the single characters, that are read as UNKNOWN, each once."""
    if tokenizer.closed:
        return []
    found: dict[str, None] = {}
    for word in dict.fromkeys(text.split()):
        ids = [int(index) for index in tokenizer.encode(word)]
        if UNKNOWN in ids and word != SPECIALS[UNKNOWN]:
            parts = [word] if len(ids) == 1 else [each for each in word if UNKNOWN in tokenizer.encode(each)]
            found.update(dict.fromkeys(parts))
    return list(found)


def unknown_note(tokenizer: Tokenizer, text: str, where: str = "the prompt") -> str:
    """Name in one sentence what is unknown in a text; nothing where all is known."""
    return _sentence(unknown_words(tokenizer, text), where)


class UnknownWords:
    """The first unknown words of a text that is read line by line, in bounded memory."""

    def __init__(self) -> None:
        self.words: dict[str, None] = {}
        self.lines = 0

    def add(self, tokenizer: Tokenizer, line: str) -> None:
        """Take a line that has unknown words."""
        self.lines += 1
        if len(self.words) <= _NAMED:
            self.words.update(dict.fromkeys(unknown_words(tokenizer, line)))

    def note(self) -> str:
        """Name some of them in one sentence; nothing where all is known."""
        return _sentence(
            list(self.words), f"{self.lines:,} line{'s' if self.lines > 1 else ''}", more="others"
        )


def _sentence(words: list[str], where: str, more: str = "") -> str:
    if not words:
        return ""
    named = ", ".join(repr(word) for word in words[:_NAMED])
    rest = f" and {more or f'{len(words) - _NAMED:,} more'}" if len(words) > _NAMED else ""
    return f"not in the vocabulary, so read as unknown in {where}: {named}{rest}"

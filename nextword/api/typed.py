"""What comes next while a text is being typed: quickly, and as a writer of its script thinks of it.

A word that has been begun is completed. Where a script writes no spaces between words (Chinese, Thai), tokens
are listed, since what stands between spaces is a whole sentence. What is not whole characters is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from nextword.api.next import check_words, likely_tokens, with_end
from nextword.api.opened import Opened, language_model
from nextword.api.prompts import notes_on
from nextword.core.contracts import UNKNOWN, PieceTokenizer
from nextword.decode.words import FoundWord, FoundWords, WordSearch, next_words

# Thai, Lao, Tibetan, Myanmar, Khmer; kana and Han: no spaces between words
_NO_SPACES = re.compile("[\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff"
                        "\U00020000-\U0003ffff]\\s*$")  # fmt: skip
_BYTE = re.compile("\ufffd|" + r"\\x[89a-f][0-9a-f]")  # how a byte that is not a character is written
_searches: WeakKeyDictionary[Opened, WordSearch] = WeakKeyDictionary()


@dataclass(frozen=True)
class Typed:
    """What may come next, the most likely first, and the probability of all that is not listed."""

    asks: str  # word, completion or token
    words: tuple[FoundWord, ...]
    unknown: float  # any word outside the vocabulary
    part: str  # the beginning of a word that is completed
    unit: str  # what END ends: line or document
    notes: tuple[str, ...] = ()

    @property
    def others(self) -> float:
        """Return the probability of all that is not listed."""
        return max(0.0, 1.0 - self.unknown - sum(word.probability for word in self.words))


def typed(run: Opened, text: str, top: int = 8) -> Typed:
    """Return what may come after a text, or how the word at its end may go on."""
    opened = language_model(run, forward=True)
    unit, notes = opened.tokenizer.unit, tuple(notes_on(opened, text, "the text"))
    if asks_tokens(opened, text):
        tokens = [each for each in likely_tokens(opened, text, 4 * top) if _is_whole(each)]
        return Typed("token", tuple(tokens[:top]), 0.0, "", unit, notes)
    check_words(opened)
    found = typed_words(opened, text, top)
    last = text.split()[-1] if found.part else ""  # as it was typed: the model may not know its letters
    words = [_begins(each, found.part, last) for each in with_end(found)]
    whole = tuple(each for each in words if _is_whole(each, last))[:top]
    return Typed("completion" if found.part else "word", whole, found.unknown, last, unit, notes)


def typed_words(
    opened: Opened, text: str, top: int | None = None, words: Iterable[str] | None = None
) -> FoundWords:
    """Return the next word, or how a word that is being typed may end; ``words``: only these."""
    if not isinstance(opened.tokenizer, PieceTokenizer):
        is_begun = _ends_inside(text) and UNKNOWN in opened.tokenizer.encode(text)[-1:]
        return next_words(opened.model, opened.tokenizer, text, is_begun, words, top=top)
    search = _searches.get(opened) or WordSearch(opened.model, opened.tokenizer)
    _searches[opened] = search  # the next text mostly begins like this one
    return search.find(text, _is_begun(search, text), words, top)


def _is_begun(search: WordSearch, text: str) -> bool | None:
    """Tell whether the last word is only begun: it is more likely to go on than to end here."""
    if not _ends_inside(text):
        return None
    found = search.find(text, True, [text.split()[-1]])
    return sum(word.probability for word in found.words) < 0.5


def _ends_inside(text: str) -> bool:
    return text != "" and not text[-1].isspace()


def asks_tokens(opened: Opened, text: str) -> bool:
    """Tell whether tokens are listed: the text ends in a script without spaces, and tokens are pieces."""
    return isinstance(opened.tokenizer, PieceTokenizer) and _NO_SPACES.search(text) is not None


def _begins(word: FoundWord, part: str, last: str) -> FoundWord:
    return replace(word, text=last + word.text[len(part) :]) if part else word


def _is_whole(word: FoundWord, last: str = "") -> bool:
    """Tell whether a word goes on in known, whole characters; bytes of an unfinished one are not shown."""
    return _BYTE.search(word.text, len(last)) is None

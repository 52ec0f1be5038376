"""Scripts that put no spaces between words, where the tokenizer ``words`` makes a word of a whole clause."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

# First and last code point: Thai and Lao, Myanmar, Khmer, kana, Han and its extensions.
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
PIECES = 2_000  # of the vocabulary that suffice
_SHARE = 0.3  # of the pieces
_LONG = 5.0  # letters of a piece on average; words that were separated before are shorter


def unspaced_note(pieces: Iterable[str]) -> str | None:
    """Return a note for a vocabulary of clauses (Chinese, Japanese, Thai) instead of words, else None."""
    letters = [sum(_is_unspaced(ord(c)) for c in piece) for piece in islice(pieces, PIECES) if piece]
    texts = [count for count in letters if count]
    if not letters or len(texts) < _SHARE * len(letters) or sum(texts) < _LONG * len(texts):
        return None
    return (
        "this language puts no spaces between words, so that a 'word' is a whole clause here; "
        "use --tokenizer characters or --tokenizer bpe"
    )


def _is_unspaced(code: int) -> bool:
    return code >= _UNSPACED[0][0] and any(first <= code <= last for first, last in _UNSPACED)

"""The plain twin of the kernels of `nextword.text.hashing`: the same hashes, written out in Python."""

from __future__ import annotations

import re

_ALL = (1 << 64) - 1
_PIECE = re.compile(rb"[0-9A-Za-z\x80-\xff]+|[^\x00-\x20\x7f]")


def words_of(text: str) -> list[bytes]:
    """Return the words and marks of a text, ASCII in lower case."""
    return [piece.lower() for piece in _PIECE.findall(text.encode("utf-8", "replace"))]


def fnv(data: bytes, key: int = 0xCBF29CE484222325) -> int:
    """Return FNV-1a."""
    for byte in data:
        key = (key ^ byte) * 0x100000001B3 & _ALL
    return key


def finish(key: int) -> int:
    """Return the hash with its bits mixed."""
    key = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15 & _ALL
    return key ^ (key >> 29)


def features(text: str, word_ngrams: int, min_n: int, max_n: int) -> list[int]:
    """Return the hashes of the n-grams of words and characters of a text, sorted."""
    words = words_of(text)
    found = []
    for at in range(len(words)):
        for n in range(1, min(word_ngrams, at + 1) + 1):
            key = 0
            for back in range(n):
                key = (key * 0xC6A4A7935BD1E995 + fnv(words[at - back])) & _ALL
            found.append(finish(key))
    for word in words:
        if re.fullmatch(rb"[0-9a-z\x80-\xff]+", word) is None:
            continue
        characters = [b"<", *re.findall(rb"[^\x80-\xbf][\x80-\xbf]*", word), b">"]
        for start in range(len(characters)):
            for n in range(min_n, min(max_n, len(characters) - start) + 1):
                if n == 1 and start in (0, len(characters) - 1):
                    continue
                found.append(finish(fnv(b"".join(characters[start : start + n]), 0x9AE16A3B2F90404F)))
    return sorted(found)


def tokens(text: str, characters: bool) -> list[int]:
    """Return the hashes of the words, or of the characters with white space as one, of a text."""
    if not characters:
        return [finish(fnv(word)) for word in words_of(text)]
    raw = re.sub(rb"[\x00-\x20\x7f]+", b" ", text.encode("utf-8", "replace")).strip(b" ").lower()
    pieces = re.findall(rb"[^\x80-\xbf][\x80-\xbf]*", raw)
    return [finish(fnv(b"" if piece == b" " else piece)) for piece in pieces]

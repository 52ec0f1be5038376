"""Texts as numbers in one compiled pass over their bytes: hashed words, characters and n-grams of both.

A word is a run of letters, digits and bytes above 127; a mark stands alone; ASCII letters are taken in lower
case. Hashes are FNV-1a with a final mix; n-grams of words combine the hashes of their words, n-grams of
characters are bytes of ``<word>`` (Bojanowski et al. 2017). The plain twin of the kernels is
``tests/support/hashed_features.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nextword.system.compiled import compiled

Array = np.ndarray[Any, np.dtype[Any]]

_U = np.uint64
_SEED, _PRIME = _U(0xCBF29CE484222325), _U(0x100000001B3)
_OF_CHARACTERS = _U(0x9AE16A3B2F90404F)  # where hashes of character n-grams begin, so that none is a word's
_JOIN, _MIX = _U(0xC6A4A7935BD1E995), _U(0x9E3779B97F4A7C15)
_SPACE, _WORD, _MARK = 0, 1, 2
_ONE, _ZERO = _U(1), _U(0)


def _kinds() -> Array:
    found = np.full(256, _MARK, np.uint8)
    found[:33], found[127], found[128:] = _SPACE, _SPACE, _WORD
    for first, last in ((b"0", b"9"), (b"A", b"Z"), (b"a", b"z")):
        found[first[0] : last[0] + 1] = _WORD
    return found


def _lower() -> Array:
    found = np.arange(256, dtype=np.uint8)
    found[ord("A") : ord("Z") + 1] += 32
    return found


_KINDS, _LOWER = _kinds(), _lower()


class Packed(NamedTuple):
    """The bytes of texts, one after another; text i is ``data[bounds[i]:bounds[i + 1]]``."""

    data: Array
    bounds: Array


class Hashes(NamedTuple):
    """Hashes of all texts, one after another; those of text i are ``values[bounds[i]:bounds[i + 1]]``."""

    values: Array
    bounds: Array

    @property
    def lengths(self) -> Array:
        """Return how many hashes each text has."""
        return np.diff(self.bounds)


def pack(texts: Sequence[str]) -> Packed:
    """Put texts one after another as UTF-8; a lone surrogate becomes a question mark."""
    pieces = [text.encode("utf-8", "replace") for text in texts]
    bounds = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=bounds[1:])
    return Packed(np.frombuffer(b"".join(pieces), np.uint8), bounds)


def features(texts: Sequence[str], word_ngrams: int, min_n: int, max_n: int) -> Hashes:
    """Return hashes of the n-grams of words, up to ``word_ngrams``, and of characters, of min_n to max_n."""
    packed = pack(texts)
    return Hashes(*_features(packed.data, packed.bounds, word_ngrams, min_n, max_n))


def tokens(texts: Sequence[str], characters: bool) -> Hashes:
    """Return a hash for each word, or for each character, in order."""
    packed = pack(texts)
    return Hashes(*_tokens(packed.data, packed.bounds, characters))


def buckets(hashes: Hashes, size: int) -> Hashes:
    """Return the distinct buckets of each text, of which there are ``size``, a power of two."""
    return Hashes(*_buckets(hashes.values, hashes.bounds, size))


def about_distinct(hashes: Hashes) -> int:
    """Return about how many different hashes there are.

    Linear counting (Whang et al. 1990): of m places, as many stay empty as chance leaves.
    """
    places = 1 << max(16, len(hashes.values).bit_length())
    empty = places - int(_filled(hashes.values, places))
    return round(-places * float(np.log(max(1, empty) / places)))


@compiled(nogil=True)
def _filled(values: Array, places: int) -> int:
    """Return how many of the places some hash falls into."""
    is_filled = np.zeros(places, np.bool_)
    mask, filled = _U(places - 1), 0
    for value in values:
        if not is_filled[value & mask]:
            is_filled[value & mask] = True
            filled += 1
    return filled


@compiled(nogil=True)
def _finish(key: Any) -> Any:
    """Mix the bits, so that the low ones alone tell features apart."""
    key = (key ^ (key >> _U(32))) * _MIX
    return key ^ (key >> _U(29))


@compiled(nogil=True)
def _word_end(data: Array, at: int, stop: int) -> int:
    """Return where the word or mark ends that begins here."""
    if _KINDS[data[at]] == _MARK:
        return at + 1
    while at < stop and _KINDS[data[at]] == _WORD:
        at += 1
    return at


@compiled(nogil=True)
def _word_key(data: Array, start: int, stop: int) -> Any:
    key = _SEED
    for at in range(start, stop):
        key = (key ^ _U(_LOWER[data[at]])) * _PRIME
    return key


@compiled(nogil=True)
def _character_ngrams(
    data: Array, start: int, stop: int, min_n: int, max_n: int, found: Array, filled: int
) -> int:
    """Add the hashes of the character n-grams of ``<word>``; return how many there are now."""
    length = stop - start + 2
    for first in range(length):
        if 0 < first < length - 1 and (data[start + first - 1] & 0xC0) == 0x80:
            continue  # inside a character
        key, at, n = _OF_CHARACTERS, first, 0
        while at < length and n < max_n:
            if at == 0:
                key = (key ^ _U(60)) * _PRIME
            elif at == length - 1:
                key = (key ^ _U(62)) * _PRIME
            else:
                key = (key ^ _U(_LOWER[data[start + at - 1]])) * _PRIME
            at += 1
            while 0 < at < length - 1 and (data[start + at - 1] & 0xC0) == 0x80:
                key = (key ^ _U(data[start + at - 1])) * _PRIME
                at += 1
            n += 1
            if n >= min_n and not (n == 1 and (first == 0 or at == length)):
                found[filled] = _finish(key)
                filled += 1
    return filled


@compiled(nogil=True)
def _features(data: Array, bounds: Array, word_ngrams: int, min_n: int, max_n: int) -> Any:
    texts = len(bounds) - 1
    out = np.zeros(texts + 1, np.int64)
    found = np.empty(4 * len(data) + 64, np.uint64)
    window = np.zeros(max(1, word_ngrams), np.uint64)
    filled = 0
    for text in range(texts):
        at, stop, words = bounds[text], bounds[text + 1], 0
        while at < stop:
            if _KINDS[data[at]] == _SPACE:
                at += 1
                continue
            end = _word_end(data, at, stop)
            room = filled + word_ngrams + max(0, max_n) * (end - at + 2)
            if room > len(found):
                wider = np.empty(2 * room, np.uint64)
                wider[:filled] = found[:filled]
                found = wider
            if word_ngrams > 0:
                window[words % word_ngrams] = _word_key(data, at, end)
                words += 1
                key = _ZERO
                for n in range(min(words, word_ngrams)):  # the word, the two last words, …
                    key = key * _JOIN + window[(words - 1 - n) % word_ngrams]
                    found[filled] = _finish(key)
                    filled += 1
            if max_n > 0 and _KINDS[data[at]] == _WORD:
                filled = _character_ngrams(data, at, end, min_n, max_n, found, filled)
            at = end
        out[text + 1] = filled
    return found[:filled].copy(), out


@compiled(nogil=True)
def _tokens(data: Array, bounds: Array, characters: bool) -> Any:
    texts = len(bounds) - 1
    out = np.zeros(texts + 1, np.int64)
    found = np.empty(len(data), np.uint64)
    filled = 0
    for text in range(texts):
        at, stop, spaced = bounds[text], bounds[text + 1], False
        while at < stop:
            if _KINDS[data[at]] == _SPACE:
                at, spaced = at + 1, True
                continue
            if characters:
                if spaced and filled > out[text]:  # whitespace is one character, and none begins a text
                    found[filled] = _finish(_word_key(data, at, at))
                    filled += 1
                end = at + 1
                while end < stop and (data[end] & 0xC0) == 0x80:
                    end += 1
            else:
                end = _word_end(data, at, stop)
            found[filled] = _finish(_word_key(data, at, end))
            filled, at, spaced = filled + 1, end, False
        out[text + 1] = filled
    return found[:filled].copy(), out


@compiled(nogil=True)
def _buckets(values: Array, bounds: Array, size: int) -> Any:
    texts = len(bounds) - 1
    out = np.zeros(texts + 1, np.int64)
    found = np.empty(len(values), np.int32)
    last = np.full(size, -1, np.int32)  # the last text that each bucket was seen in
    filled, mask = 0, _U(size - 1)
    for text in range(texts):
        for at in range(bounds[text], bounds[text + 1]):
            bucket = np.int32(values[at] & mask)
            if last[bucket] != text:
                last[bucket] = text
                found[filled] = bucket
                filled += 1
        out[text + 1] = filled
    return found[:filled].copy(), out

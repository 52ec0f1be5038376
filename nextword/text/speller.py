"""A small byte model that spells words outside the vocabulary.

An n-gram over the bytes of the vocabulary's words with interpolated Witten-Bell smoothing
(Witten & Bell 1991): p(unknown) * p(spelling) makes bits per byte defined for a word model on any text.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

ORDER = 4  # a byte is predicted from the three before it
STOP = 256  # the symbol after the last byte of a word
SYMBOLS = 257
# Words that occur late in a text resemble unknown words, and this many are enough to train on.
_TAUGHT_BY = 1 << 16
_KEPT = 1 << 14  # cached distributions, 2 kB each
_CONTEXT = ORDER - 1


class Speller:
    """p(byte | the bytes before it in the word), STOP included; NUL bytes precede the first byte."""

    def __init__(self, words: Sequence[bytes]) -> None:
        self._levels = _count(words[-_TAUGHT_BY:])
        self._known: dict[bytes, Array] = {}

    def distribution(self, context: bytes) -> Array:
        """Return the float64 probabilities of the 257 symbols after these three bytes."""
        found = self._known.get(context)
        if found is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = self._known[context] = self._estimate(context)
        return found

    def _estimate(self, context: bytes) -> Array:
        """Return p(s|c) = (n(c, s) + T(c) p(s|shorter c)) / (n(c) + T(c)), for contexts of 0 to 3 bytes."""
        p = np.full(SYMBOLS, 1.0 / SYMBOLS)
        for length, (codes, counts) in enumerate(self._levels):
            code = int.from_bytes(context[_CONTEXT - length :], "big")
            first, stop = np.searchsorted(codes, [code << 9, (code + 1) << 9])
            if first == stop:
                break
            kinds = float(stop - first)
            p *= kinds
            p[codes[first:stop] & 511] += counts[first:stop]
            p /= counts[first:stop].sum() + kinds
        return p

    def symbols(self, word: bytes) -> tuple[tuple[Array, int], ...]:
        """Return the symbols an entropy coder must code: every byte, then STOP."""
        padded = b"\0" * _CONTEXT + word
        return tuple(
            (self.distribution(padded[i : i + _CONTEXT]), word[i] if i < len(word) else STOP)
            for i in range(len(word) + 1)
        )

    def ask(self) -> Generator[Array, int, bytes]:
        """Decode a word: ask for symbols until STOP and return it."""
        padded = bytearray(_CONTEXT)
        while (symbol := (yield self.distribution(bytes(padded[-_CONTEXT:])))) != STOP:
            padded.append(symbol)
        return bytes(padded[_CONTEXT:])

    def costs(self, words: Sequence[bytes]) -> Array:
        """Return the nats of spelling each word: the same estimate for all of them at once."""
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        p = np.full(int(lengths.sum()) + len(words), 1.0 / SYMBOLS)
        for length, (codes, counts) in enumerate(self._levels):
            if len(codes) == 0:  # an empty vocabulary has no counts
                break
            wanted = _codes(words, length)
            first, stop = (np.searchsorted(codes, ((wanted >> 9) + i) << 9) for i in (0, 1))
            kinds = (stop - first).astype(np.float64)
            total = np.concatenate(([0], np.cumsum(counts)))
            at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
            here = np.where(codes[at] == wanted, counts[at], 0)
            known = kinds > 0
            p[known] = (p * kinds + here)[known] / (total[stop] - total[first] + kinds)[known]
        totals: Array = np.add.reduceat(-np.log(p), np.cumsum(lengths + 1) - lengths - 1)
        return totals


def _codes(words: Sequence[bytes], length: int) -> Array:
    """Return the context of this many bytes and the symbol, for every byte and STOP of every word."""
    apart = b"\0" * _CONTEXT
    data = np.frombuffer(apart + b"".join(word + apart for word in words), np.uint8).astype(np.int64)
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    symbols = data.copy()
    symbols[np.cumsum(lengths + _CONTEXT)] = STOP  # where the first NUL after a word is
    at = np.flatnonzero(symbols)
    context = np.zeros(len(at), np.int64)
    for back in range(1, length + 1):
        context += data[at - back] << (8 * (back - 1))
    return (context << 9) | symbols[at]


def _count(words: Sequence[bytes]) -> list[tuple[Array, Array]]:
    """Return sorted codes (context, symbol) and their counts for contexts of 0 … 3 bytes."""
    return [np.unique(_codes(words, length), return_counts=True) for length in range(ORDER)]

"""Entropy coding of tokens from a large vocabulary, exactly invertible (range coding, `constriction`).

A token of probability p costs -log2 p bits (Shannon 1948). Probabilities become whole numbers first: sums of
whole numbers are exact in any order, so encoder and decoder agree to the last bit. A token is coded in two
symbols, its bucket and its place there, each with the coder's 24 bits of precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.errors import MissingPart
from nextword.models.distributions import Floats

SCALE = 2.0**32  # the weight of probability 1; every token gets 1 more, so that none is impossible


class IntegerDistribution:
    """A distribution as whole numbers, in buckets of about √V tokens."""

    def __init__(self, logp_V: Floats) -> None:
        p_V = np.exp(logp_V, dtype=np.float64)
        if not 0 < float(p_V.sum()) < np.inf:  # not a distribution: use a uniform one
            p_V = np.full(len(p_V), 1.0 / len(p_V))
        p_V *= SCALE
        self.weights = np.floor(p_V, out=p_V)
        self.weights += 1.0
        self.size = max(2, 1 << (len(p_V).bit_length() // 2))
        self.buckets = np.add.reduceat(self.weights, np.arange(0, len(p_V), self.size))

    def inside(self, bucket: int) -> Floats:
        """Return the weights of the tokens of one bucket."""
        return self.weights[bucket * self.size : (bucket + 1) * self.size]


class RangeEncoder:
    """Appends symbols to a compressed stream."""

    def __init__(self) -> None:
        stream = _stream()
        self._model, self._coder = stream.model.Categorical, stream.queue.RangeEncoder()

    def word(self, weights: IntegerDistribution, word: int) -> None:
        """Append one token of the vocabulary."""
        bucket, place = divmod(word, weights.size)
        self.symbol(weights.buckets, bucket)
        self.symbol(weights.inside(bucket), place)

    def symbol(self, probabilities: Floats, symbol: int) -> None:
        """Append one symbol of a small alphabet; an alphabet of one costs nothing."""
        if len(probabilities) > 1:
            self._coder.encode(symbol, self._model(probabilities, lazy=True))

    def finish(self) -> bytes:
        """Return the compressed stream."""
        return bytes(self._coder.get_compressed().astype("<u4").tobytes())


class RangeDecoder:
    """Takes the symbols out of a compressed stream, in the same order."""

    def __init__(self, data: bytes) -> None:
        stream = _stream()
        words = np.frombuffer(data, dtype="<u4").astype(np.uint32)
        self._model, self._coder = stream.model.Categorical, stream.queue.RangeDecoder(words)

    def word(self, weights: IntegerDistribution) -> int:
        """Take out one token of the vocabulary."""
        bucket = self.symbol(weights.buckets)
        return bucket * weights.size + self.symbol(weights.inside(bucket))

    def symbol(self, probabilities: Floats) -> int:
        """Take out one symbol of a small alphabet."""
        if len(probabilities) == 1:
            return 0
        return int(self._coder.decode(self._model(probabilities, lazy=True)))


def _stream() -> Any:
    try:
        from constriction import stream
    except ImportError as error:
        raise MissingPart("constriction", "all", "compressing with a model") from error
    return stream

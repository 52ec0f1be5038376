"""Estimate what counting takes, from the size of the text alone.

The rates are those of running English text at order 5 on two cores; other texts differ by a factor of two
or so.
"""

from __future__ import annotations

from nextword.core.family import Cost

_BYTES_PER_TOKEN = {"words": 5.0, "bpe": 4.2, "unigram": 4.2, "characters": 1.0, "bytes": 1.0}
_NEW_GRAMS = 0.62  # n-grams that are new, per token and order, once the order is 3 or more
_BYTES_PER_GRAM = 12.0  # on disk, all arrays together
_BYTES_PER_QUANTIZED = 1.0  # besides the bits of the probability, with `model.bits`
_BYTES_PER_COUNT = 15.0  # in memory, while they are counted
_TOKENS_PER_SECOND = 1e7  # of one order
_START = 1.5  # seconds until the first token: imports and compiled kernels


def cost(size: int, tokenizer: str, order: int = 5, bits: int = 0) -> Cost:
    """Return tokens, seconds, memory and disk for a text of this size in bytes."""
    each = bits / 8 + _BYTES_PER_QUANTIZED if bits else _BYTES_PER_GRAM
    tokens = size / _BYTES_PER_TOKEN.get(tokenizer, 4.0)
    grams = tokens * _NEW_GRAMS * order * 0.8
    memory = 150e6 + size * 0.5 + tokens * 8 + grams * _BYTES_PER_COUNT
    seconds = _START + tokens * order / _TOKENS_PER_SECOND
    return Cost(round(tokens), round(seconds, 1), round(memory), round(grams * each))

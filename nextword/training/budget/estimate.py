"""``--estimate``: what a training would take, from the size of its text alone.

The rates are those of running English text at order 5 on two cores; other texts differ by a factor of two
or so.
"""

from __future__ import annotations

from typing import Any

from nextword.runs.settings import RunSettings

_BYTES_PER_TOKEN = {"words": 5.0, "bpe": 4.2, "unigram": 4.2, "characters": 1.0, "bytes": 1.0}
_NEW_GRAMS = 0.62  # n-grams that are new, per token and order, once the order is 3 or more
_BYTES_PER_GRAM = 12.0  # on disk, all arrays together
_BYTES_PER_COUNT = 15.0  # in memory, while they are counted
_TOKENS_PER_SECOND = 1e7  # of one order
_START = 1.5  # seconds until the first token: imports and compiled kernels


def estimate(settings: RunSettings, size: int) -> dict[str, Any]:
    """Seconds, memory and disk for a text of so many bytes."""
    tokens = size / _BYTES_PER_TOKEN.get(settings.text.tokenizer, 4.0)
    order = int(getattr(settings.model, "order", 5))
    grams = tokens * _NEW_GRAMS * order * 0.8
    memory = 150e6 + size * 0.5 + tokens * 8 + grams * _BYTES_PER_COUNT
    return {
        "model": settings.name,
        "bytes": size,
        "tokens": round(tokens),
        "seconds": round(_START + tokens * order / _TOKENS_PER_SECOND, 1),
        "memory": round(min(memory, settings.train.memory) if settings.train.memory else memory),
        "disk": round(grams * _BYTES_PER_GRAM),
    }

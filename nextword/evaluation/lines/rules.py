"""Which lines to keep by their scores: CCNet's buckets of perplexity (Wenzek et al. 2020).

A score is nats per token, or the difference of two models' (Moore & Lewis 2010); lower is better. A line
without a word has none (NaN) and is never kept: it would be the most likely of all.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nextword.core.errors import ConfigError

Scores = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]

ALLOWED = "best, worst, head:P, middle:P, tail:P (P percent of the lines), below:X, buckets or buckets:P"
BUCKETS = ("head", "middle", "tail")
_FORM = re.compile(r"(head|middle|tail|below|buckets):([-+]?[0-9.]+(?:e[-+]?[0-9]+)?)", re.IGNORECASE)


@dataclass(frozen=True)
class KeepRule:
    """Keep the lines of ranks `low` to `high` percent, or those with a score below a limit."""

    text: str
    low: float = 0.0
    high: float = 100.0
    limit: float | None = None
    outer: float | None = None  # percent of the lines in the head, and in the tail, where all are kept

    @classmethod
    def parse(cls, text: str, difference: bool = False) -> KeepRule:
        """Parse a rule from its name.

        ``best`` is the better half, ``worst`` the other one; ``head:30`` the best 30 percent, ``tail:30``
        the worst, ``middle:30`` those around the median; ``below:X`` a perplexity, or a difference in nats.
        ``buckets`` keeps everything and says to which third each line belongs; ``buckets:20`` has 20 percent
        in the head and 20 in the tail.
        """
        whole = {"best": "head:50", "worst": "tail:50", "buckets": f"buckets:{100 / 3}"}.get(text, text)
        found = _FORM.fullmatch(whole)
        if found is None:
            raise ConfigError(f"'--keep' is '{text}'; it can be {ALLOWED}")
        name, value = found[1].lower(), _number(found[2], text)
        if name == "below":
            if not difference and value <= 0:
                raise ConfigError(f"'--keep' is '{text}'; a perplexity limit must be more than 0")
            return cls(text, limit=value if difference else math.log(value))
        if not 0 < value <= 100:
            raise ConfigError(f"'--keep' is '{text}'; P is in percent, more than 0 and at most 100")
        if name == "buckets":
            if value > 50:
                raise ConfigError(f"'--keep' is '{text}'; head and tail have P percent each, at most 50")
            return cls(text, outer=value)
        middle = (50 - value / 2, 50 + value / 2)
        return cls(text, *{"head": (0.0, value), "tail": (100 - value, 100.0), "middle": middle}[name])

    @property
    def needs_all(self) -> bool:
        """Whether the scores of all lines must be known before the first can be kept."""
        return self.limit is None

    def mask(self, scores: Scores) -> Mask:
        """Tell which of these lines are kept; among equal scores the earlier line counts as better."""
        known = ~np.isnan(scores)
        if self.outer is not None:
            return np.ones(len(scores), dtype=np.bool_)
        if self.limit is not None:
            return known & (scores < np.float32(self.limit))
        kept = np.zeros(len(scores), dtype=np.bool_)
        kept[known] = _best(scores[known], self.high) & ~_best(scores[known], self.low)
        return kept

    def buckets(self, scores: Scores) -> npt.NDArray[np.int8] | None:
        """Return each line's place in `BUCKETS`, -1 without a word; None where the rule has no buckets."""
        if self.outer is None:
            return None
        found = np.full(len(scores), -1, dtype=np.int8)
        known = ~np.isnan(scores)
        head, most = _best(scores[known], self.outer), _best(scores[known], 100 - self.outer)
        found[known] = np.where(head, 0, np.where(most, 1, 2))
        return found


def _number(digits: str, text: str) -> float:
    try:
        return float(digits)
    except ValueError as error:
        message = f"'--keep' is '{text}', where '{digits}' is not a number; it can be {ALLOWED}"
        raise ConfigError(message) from error


def _best(scores: Scores, percent: float) -> Mask:
    """Find the best P percent, rounded to whole lines, without sorting."""
    count = math.floor(len(scores) * percent / 100 + 0.5)
    if count <= 0:
        return np.zeros(len(scores), dtype=np.bool_)
    if count >= len(scores):
        return np.ones(len(scores), dtype=np.bool_)
    edge = np.partition(scores, count - 1)[count - 1]
    better, equal = scores < edge, scores == edge
    kept: Mask = better | (equal & (np.cumsum(equal) <= count - int(better.sum())))
    return kept

"""Costs and benefits of longer n-grams: unseen n-grams, bytes and perplexity, order by order.

[XMU "Main weaknesses of n-gram models"]: sparsity is severe when n is large, and all n-grams must be stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nextword.core.contracts import START, UNKNOWN
from nextword.drawing.page import Table
from nextword.drawing.svg import Axis, Series, lines
from nextword.ngram import estimation
from nextword.ngram.model import NgramModel
from nextword.ngram.settings import NgramSettings

Array = np.ndarray[Any, np.dtype[Any]]
MOST_HELD = 200_000  # this many held-out ids give every share to a tenth of a per cent


@dataclass(frozen=True)
class OrderFacts:
    """The n-grams of one length."""

    n: int
    grams: int  # different n-grams in the training text
    unseen: float  # share of the held-out n-grams that are not among them
    bytes: int  # of the arrays of a whole model of this order


@dataclass(frozen=True)
class Fit:
    """How well one model predicts the held-out ids."""

    perplexity: float  # infinite where a token has probability 0
    known: float  # the same over known words and END only
    zeros: int
    tokens: int

    @property
    def zero_share(self) -> float:
        """The share of tokens to which the model gives probability 0."""
        return self.zeros / max(1, self.tokens)


def measure(model: NgramModel, held: Array) -> Fit:
    """Measure the perplexity of packed ids."""
    held = np.asarray(held)
    logp = np.asarray(model.score_packed(held))
    real = held != START
    zeros = int(np.isneginf(logp[real]).sum())
    return Fit(_perplexity(logp[real]), _perplexity(logp[real & (held != UNKNOWN)]), zeros, int(real.sum()))


def _perplexity(logp: Array) -> float:
    nats = -float(np.mean(logp, dtype=np.float64)) if len(logp) else 0.0
    return math.exp(nats) if nats < 700 else math.inf


def sample(held: Array, most: int = MOST_HELD) -> Array:
    """Return the first whole sequences of packed ids, up to a bound."""
    if len(held) <= most:
        return held
    starts = np.flatnonzero(np.asarray(held[: most + 1]) == START)
    return held[: int(starts[-1])] if len(starts) > 1 else held[:most]


def look(ids: Array, held: Array, vocab_size: int, order: int) -> Iterator[OrderFacts]:
    """Measure every order up to `order`; counts alone, no smoothing."""
    model = estimation.build(ids, vocab_size, NgramSettings(order=order, smoothing="backoff"))
    unseen = unseen_shares(model, sample(held))
    for n in range(1, order + 1):
        grams = len(model.trie.levels[n - 1]) if n > 1 else int(np.count_nonzero(np.bincount(ids))) - 1
        yield OrderFacts(n, grams, unseen[n - 1], _bytes(model, n))


def unseen_shares(model: NgramModel, held: Array) -> list[float]:
    """Return, for n = 1 … order, the share of the held-out n-grams that the model has never seen.

    START counts as a token, so that the first token of a sequence ends a bigram.
    """
    used = np.asarray(model.explain_packed(held)[1])
    places = np.arange(len(held))
    is_start = np.asarray(held) == START
    read = places - np.maximum.accumulate(np.where(is_start, places, 0))  # tokens before, START included
    known = np.asarray(model.trie.levels[0].probs)[held] > 0
    shares = []
    for n in range(1, model.order + 1):
        whole = ~is_start & (read >= n - 1)
        seen = known if n == 1 else used >= n
        shares.append(float(np.mean(~seen[whole])) if whole.any() else 0.0)
    return shares


def _bytes(model: NgramModel, order: int) -> int:
    """Return bytes on disk of a model of lower order: its highest level needs neither weights nor offsets."""
    total = 0
    for n, level in enumerate(model.trie.levels[:order], start=1):
        total += level.probs.nbytes + (level.words.nbytes if n > 1 else 0)
        if n < order and level.backoffs is not None and level.children is not None:
            total += level.backoffs.nbytes + level.children.nbytes
    return total


def table(facts: list[OrderFacts]) -> Table:
    """Return the facts as rows."""
    rows = tuple((each.n, each.grams, each.unseen, each.bytes) for each in facts)
    return Table(("order", "n-grams seen", "share unseen in new text", "bytes of the model"), rows)


def orders_axis(most: int) -> Axis:
    """Make an axis for the order n, whole numbers only."""
    return Axis("order n", names=tuple((float(n), str(n)) for n in range(1, most + 1)))


def unseen_picture(facts: list[OrderFacts]) -> str:
    """Plot sparsity: the share of unseen n-grams by order."""
    points = tuple((float(each.n), 100 * each.unseen) for each in facts)
    return lines(
        [Series("unseen n-grams", points)], "Share of unseen n-grams by order",
        orders_axis(len(facts)), Axis("held-out n-grams never seen, %", zero=True),
    )  # fmt: skip


def bytes_picture(facts: list[OrderFacts], text_bytes: int) -> str:
    """Plot storage: the bytes of the model by order, beside those of the text itself."""
    model = tuple((float(each.n), each.bytes / 1e6) for each in facts)
    text = tuple((float(each.n), text_bytes / 1e6) for each in facts)
    series = [Series("the model", model), *([Series("the text itself", text)] if text_bytes else [])]
    return lines(
        series, "Bytes of a model by order", orders_axis(len(facts)), Axis("megabytes on disk", zero=True)
    )

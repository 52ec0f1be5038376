"""A batch of tokens through a suffix array, in plain NumPy: longest matches, counts and probabilities.

All rows and places of the batch go through one context length at a time; only matches longer than the
levels are followed token by token. The plain version of `suffix.queries.walk`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nextword.core.contracts import END, START
from nextword.ngram.suffix.array import SuffixArray, damaged

if TYPE_CHECKING:
    from nextword.ngram.unbounded import UnboundedModel

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class UnboundedState:
    """Where the last 1, 2, … tokens are in the suffix array, and their longest match."""

    low_BK: Array  # int64: intervals of the last k tokens, empty if they are not in the text
    high_BK: Array
    long_B3: Array  # int64: low, high and length of the longest match


@dataclass(frozen=True)
class Matches:
    """What was known before each token of a stream."""

    lengths: Array  # length of the longest match
    totals: Array  # its count (without a match: length of the text)
    hits: Array  # how often the token followed it


def walk(
    model: UnboundedModel, ids_BT: Array, lengths_B: Array, state: UnboundedState
) -> tuple[Array, Matches, UnboundedState]:
    """Return p of every token (1 at START and at -1), where it comes from, and the state after each row."""
    text = model.text
    low, high = intervals(text, ids_BT, state.low_BK, state.high_BK)
    long, together_BT = longest(text, ids_BT, low, high, state.long_B3)
    before, word_BT = long[:, :-1], np.maximum(ids_BT, 0)
    real_BT = (ids_BT >= 0) & (ids_BT != START)
    length_BT = before[..., 2]
    everything = int(model.counts_V.sum())
    total_BT = np.where(length_BT > 0, before[..., 1] - before[..., 0], everything)
    matches = Matches(*(np.where(real_BT, x, 0) for x in (length_BT, total_BT, together_BT)))
    if model.alone:
        p_BT = together_BT / np.maximum(total_BT, 1)
    else:
        p_BT = _mixed(model, low, high, before, together_BT, model.unigrams_V[word_BT])
    rows_B = np.arange(len(ids_BT))
    last_B3 = long[rows_B, lengths_B]
    goes_on_B1 = last_B3[:, 2:] > 0  # false after END, which nothing follows
    low_BK, high_BK = (np.where(goes_on_B1, x[1:-1, rows_B, lengths_B].T, 0) for x in (low, high))
    after = UnboundedState(low_BK, high_BK, last_B3)
    return np.where(real_BT, p_BT, 1.0), matches, after


def intervals(text: SuffixArray, ids_BT: Array, low_BK: Array, high_BK: Array) -> tuple[Array, Array]:
    """Return ``low[k], high[k]``: the intervals of the last k tokens, k up to one more than the levels.

    Column 0 is the given state; the token at place t is column t+1.
    """
    B, T = ids_BT.shape
    low = np.zeros((text.levels + 2, B, T + 1), dtype=np.int64)
    high = np.zeros_like(low)
    low[1:-1, :, 0], high[1:-1, :, 0] = low_BK.T, high_BK.T
    known_BT = ids_BT >= 0
    word_BT = np.maximum(ids_BT, 0)
    low[1, :, 1:] = np.where(known_BT, text.starts[word_BT], 0)
    high[1, :, 1:] = np.where(known_BT, text.starts[word_BT + 1], 0)
    open_BT = known_BT & (ids_BT != START)
    open_BT[:, 1:] &= ids_BT[:, :-1] != END
    for k in range(1, text.levels + 1):
        a, b = low[k, :, :-1], high[k, :, :-1]
        active = open_BT & (a < b)
        first, last = text.extend(a[active], b[active], k, word_BT[active])
        found = first < last
        low[k + 1, :, 1:][active] = np.where(found, first, 0)
        high[k + 1, :, 1:][active] = np.where(found, last, 0)
    return low, high


def longest(text: SuffixArray, ids_BT: Array, low: Array, high: Array, long_B3: Array) -> tuple[Array, Array]:
    """Return the longest match (low, high, length) around every token, and how often the token came next."""
    B, T = ids_BT.shape
    levels = text.levels
    size = high - low
    long = np.zeros((B, T + 1, 3), dtype=np.int64)
    length = (size > 0).sum(axis=0)  # a phrase occurs only if its suffixes do
    rows, columns = np.indices(length.shape)
    long[..., 0], long[..., 1] = low[length, rows, columns], high[length, rows, columns]
    long[..., 2] = length
    long[:, 1:, 2][ids_BT == END] = 0
    long[:, 0] = long_B3
    deep = np.argwhere((size[levels + 1, :, 1:] > 0).T)  # in text order
    followed: dict[tuple[int, int], int] = {}
    for t, b in deep.tolist():
        first, last, n = (int(x) for x in long[b, t])
        if n > levels:
            word = int(ids_BT[b, t])
            *match, hits = _follow(text, first, last, n, word)
            followed[b, t] = hits
            long[b, t + 1] = match
            if word == END:
                long[b, t + 1, 2] = 0
    before = long[:, :-1, 2]
    rows, columns = np.indices(before.shape)
    together = np.where(before <= levels, size[np.minimum(before, levels) + 1, rows, columns + 1], 0)
    for (b, t), hits in followed.items():
        together[b, t] = hits
    return long, together


def _follow(text: SuffixArray, low: int, high: int, length: int, word: int) -> tuple[int, int, int, int]:
    """Follow a match longer than the levels by one token: the new longest match, and its count."""
    first, last = text.extend_one(low, high, length, word)
    if first < last:
        return first, last, length + 1, last - first
    end = int(text.order[low]) + length  # of one occurrence of the match, whose last tokens are tried
    if end > len(text):
        raise damaged()
    good, bad = text.levels, length
    first, last = text.locate(end - good, end, word)
    while bad - good > 1:
        middle = (good + bad) >> 1
        a, b = text.locate(end - middle, end, word)
        if a < b:
            good, first, last = middle, a, b
        else:
            bad = middle
    if first >= last:
        raise damaged()
    return first, last, good + 1, 0


def _mixed(
    model: UnboundedModel, low: Array, high: Array, before: Array, together_BT: Array, p_BT: Array
) -> Array:
    """Mix from short contexts to long ones; each adds to the estimate of the shorter ones."""
    length_BT = before[..., 2]
    for k in range(1, model.levels + 1):
        rows = np.nonzero(length_BT >= k)
        a, b = low[k, :, :-1][rows], high[k, :, :-1][rows]
        n = (high[k + 1, :, 1:] - low[k + 1, :, 1:])[rows]
        if np.any(a >= b):  # a longer match without the shorter ones
            raise damaged()
        p_BT[rows] = _mix(model.kind, n, b - a, model.text.kinds(a, b, k), p_BT[rows], model.discounts[k - 1])
    for row in zip(*np.nonzero(length_BT > model.levels), strict=True):
        first, last, length = (int(x) for x in before[row])
        kinds = len(model.text.followers(first, last, length)[0])
        p_BT[row] = _mix(model.kind, together_BT[row], last - first, kinds, p_BT[row], model.discounts[-1])
    return p_BT


def _mix(kind: float, n: Any, total: Any, kinds: Any, p: Any, D: float) -> Any:
    return (n - D * (n > 0) + (kind + D) * kinds * p) / (total + kind * kinds)

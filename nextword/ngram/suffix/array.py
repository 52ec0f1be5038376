"""A suffix array over tokens: every place of the text, sorted by the tokens that follow it.

All places of a phrase are neighbours there, so that a phrase of any length is an interval, found by
bisection (Manber and Myers 1993), and so are its continuations: the unbounded n-gram (Liu et al. 2024,
"Infini-gram"). This file has the arrays, the plain construction and the plain searches; `suffix.kernels`
and `suffix.search` are the compiled versions. [MAUSAM "external memory"]
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nextword.core.contracts import END, START
from nextword.core.errors import DamagedError
from nextword.ngram.arrays import _map

Array = np.ndarray[Any, np.dtype[Any]]
MOST = 255  # `shared` is a byte: this many tokens or more
STRIDE = 256
_SAMPLE = 500_000  # suffixes used to estimate discounts
_ROWS = 4096  # windows of marks processed together
EVERY = 16  # one second token is stored per this many suffixes
_FILES = ("ids", "order", "shared", "starts", "marks", "seconds")


@dataclass(frozen=True)
class SuffixArray:
    """The text and its places in sorted order.

    A suffix is the tokens from a place to its END; equal ones are in text order. ``shared[r]`` is the
    number of tokens suffix r has in common with the one before it. In the interval of a phrase of d tokens
    no number is below d, and d itself marks where the next token changes: counting it gives the number of
    distinct next tokens. ``marks`` are running sums of that for every d up to `levels`.
    """

    ids: Array  # int32: START w … END, sequence after sequence
    order: Array  # uint32: places
    shared: Array  # uint8
    starts: Array  # int64, V+1: where the bucket of each first token starts
    marks: Array  # uint32 [levels, strides + 1]
    seconds: Array  # int32: second token of every 16th suffix, where searches in large buckets start

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def vocab_size(self) -> int:
        """V."""
        return len(self.starts) - 1

    @property
    def levels(self) -> int:
        """Phrases of up to this many tokens have marks."""
        return len(self.marks)

    def named(self) -> dict[str, Array]:
        """Map file names to arrays."""
        return {f"unbounded.{name}.npy": getattr(self, name).reshape(-1) for name in _FILES}

    # -- searches -------------------------------------------------------------------------

    def words_at(self, ranks: Array, depth: Array | int) -> Array:
        """Return the token at `depth` in each of these suffixes."""
        at = self.order[ranks].astype(np.int64) + depth
        if at.size and int(at.max()) >= len(self.ids):
            raise damaged()
        words: Array = self.ids[at]
        return words

    def extend(self, low: Array, high: Array, depth: int, words: Array) -> tuple[Array, Array]:
        """Extend intervals of phrases of `depth` tokens by one token; empty where there is none."""
        first = self._bound(low, high, depth, words)
        found = first < high
        found[found] = self.words_at(first[found], depth) == words[found]
        last = first.copy()
        last[found] = self._bound(first[found], high[found], depth, words[found].astype(np.int64) + 1)
        return first, last

    def _bound(self, low: Array, high: Array, depth: int, words: Array) -> Array:
        """Return the first suffix of each interval whose token at `depth` is not smaller."""
        low, high = low.astype(np.int64), high.astype(np.int64)
        while (going := np.flatnonzero(low < high)).size:
            middle = (low[going] + high[going]) >> 1
            smaller = self.words_at(middle, depth) < words[going]
            low[going[smaller]] = middle[smaller] + 1
            high[going[~smaller]] = middle[~smaller]
        return low

    def extend_one(self, low: int, high: int, depth: int, word: int) -> tuple[int, int]:
        """Call `extend` for one phrase of any length."""
        return self._between(low, high, word, lambda r: self._word(self._place(r) + depth))

    def locate(self, first: int, last: int, word: int) -> tuple[int, int]:
        """Return the interval of the tokens ``first … last-1`` of the text itself, followed by `word`."""
        phrase = [*self.ids[first:last].tolist(), word]
        if not 0 <= phrase[0] < self.vocab_size:
            raise damaged()
        low, high = int(self.starts[phrase[0]]), int(self.starts[phrase[0] + 1])

        def text(r: int) -> list[int]:
            at = self._place(r)
            found: list[int] = self.ids[at : at + len(phrase)].tolist()
            return found[: found.index(END) + 1] if END in found else found

        return self._between(low, high, phrase, text)

    def _between(self, low: int, high: int, wanted: Any, key: Callable[[int], Any]) -> tuple[int, int]:
        ranks = range(len(self))
        first = bisect_left(ranks, wanted, low, high, key=key)
        return first, bisect_right(ranks, wanted, first, high, key=key)

    def _place(self, r: int) -> int:
        return int(self.order[r])

    def _word(self, at: int) -> int:
        if at >= len(self.ids):
            raise damaged()
        return int(self.ids[at])

    # -- what follows ---------------------------------------------------------------------

    def kinds(self, low: Array, high: Array, depth: int) -> Array:
        """Return the number of distinct tokens after each phrase of `depth` tokens, at most `levels`."""
        inside = high > low
        return np.where(inside, 1 + self._sums(depth, high) - self._sums(depth, np.minimum(low + 1, high)), 0)

    def _sums(self, depth: int, ends: Array) -> Array:
        """Return how many suffixes before each rank share exactly `depth` tokens with their predecessor."""
        found: Array = self.marks[depth - 1, ends // STRIDE].astype(np.int64)
        steps, top = np.arange(STRIDE), max(len(self.shared) - 1, 0)
        for a in range(0, len(ends), _ROWS):
            part = ends[a : a + _ROWS, None]
            window = self.shared[np.minimum(part // STRIDE * STRIDE + steps, top)] == depth
            found[a : a + _ROWS] += (window & (steps < part % STRIDE)).sum(axis=1)
        return found

    def followers(self, low: int, high: int, depth: int) -> tuple[Array, Array]:
        """Return the tokens that follow a phrase of `depth` tokens, in increasing order, and their counts."""
        if low >= high:
            raise damaged()
        if depth < MOST:
            cuts = low + 1 + np.flatnonzero(self.shared[low + 1 : high] == depth)
        else:
            found, r = [], low
            while (r := self.extend_one(r, high, depth, self._word(self._place(r) + depth))[1]) < high:
                found.append(r)
            cuts = np.array(found, dtype=np.int64)
        heads = np.concatenate([[low], cuts]).astype(np.int64)
        words = self.words_at(heads, depth)
        if words.min() < 0 or words.max() >= self.vocab_size or words.min() == START:
            raise damaged()
        return words, np.diff(np.append(heads, high))

    def counts_of_counts(self, longest: int) -> list[tuple[int, int]]:
        """Count the phrases of 1, 2, … tokens that occur once, and twice, in a sample of the suffixes."""
        ranks = np.arange(0, len(self), max(1, len(self) // _SAMPLE))
        after = [self.shared[np.minimum(ranks + j, len(self) - 1)] for j in range(3)]
        for j in (1, 2):
            after[j] = np.where(ranks + j < len(self), after[j], 0)
        found, whole = [], np.ones(len(ranks), dtype=bool)  # suffixes with at least this many tokens
        for n in range(1, longest + 1):
            if n > 1:
                whole[whole] = self.words_at(ranks[whole], n - 2) != END
            first, next_is, last_is = (shared < n for shared in after)
            head = whole & first
            found.append((int((head & next_is).sum()), int((head & ~next_is & last_is).sum())))
        return found


def damaged() -> DamagedError:
    """Return the error for numbers from a file that point outside the arrays."""
    return DamagedError("the arrays of the unbounded n-gram point outside the text; train the run again")


# -- building ---------------------------------------------------------------------------------


def build(ids: Array, vocab_size: int, levels: int) -> SuffixArray:
    """Sort the places of a packed text (plain NumPy: for small texts)."""
    ids = np.ascontiguousarray(ids, dtype=np.int32)
    order = sort_plain(ids)
    shared = share_plain(ids, order)
    starts = np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=vocab_size))])
    return finished(ids, order.astype(np.uint32), shared, starts, _marks_plain(shared, levels))


def seconds(ids: Array, order: Array) -> Array:
    """Return the second token of every 16th suffix."""
    found: Array = ids[np.minimum(order[::EVERY].astype(np.int64) + 1, len(ids) - 1)]
    return found


def sort_plain(ids: Array) -> Array:
    """Sort places by prefix doubling: ranks by one token, then by two, four, … until all differ.

    Every END has its own rank, by its place: nothing after it is ever compared, and ties are sorted by place.
    """
    n = len(ids)
    keys = ids.astype(np.int64) * (n + 1)
    keys[ids == END] += np.flatnonzero(ids == END)
    ranks: Array = np.unique(keys, return_inverse=True)[1].reshape(-1)
    step = 1
    while True:
        order = np.argsort(ranks, kind="stable")
        if n < 2 or int(ranks.max()) == n - 1:
            return order
        further = np.zeros(n, dtype=np.int64)
        further[: n - step] = ranks[step:] + 1
        ranks = np.unique(ranks * (n + 1) + further, return_inverse=True)[1].reshape(-1)
        step *= 2


def share_plain(ids: Array, order: Array) -> Array:
    """Return how many tokens each suffix shares with the one before it, END included, at most `MOST`."""
    shared = np.zeros(len(ids), dtype=np.uint8)
    going = np.arange(1, len(ids))
    for depth in range(MOST):
        a, b = ids[order[going - 1] + depth], ids[order[going] + depth]
        going, last = going[a == b], a[a == b]
        if not len(going):
            break
        shared[going] = depth + 1
        going = going[last != END]
    return shared


def _marks_plain(shared: Array, levels: int) -> Array:
    blocks = strides(len(shared))
    places = [np.flatnonzero(shared == d) // STRIDE for d in range(1, levels + 1)]
    counts = [np.bincount(at, minlength=blocks) for at in places]
    marks = np.zeros((levels, blocks + 1), dtype=np.uint32)
    marks[:, 1:] = np.cumsum(counts, axis=1)
    return marks


def strides(n: int) -> int:
    """Return the number of blocks of `STRIDE` suffixes."""
    return -(-n // STRIDE)


def finished(
    ids: Array, order: Array, shared: Array, starts: Array, marks: Array, words: Array | None = None
) -> SuffixArray:
    """Return the arrays, read-only from now on, as when they come from a file."""
    arrays = [ids.view(), order, shared, starts.astype(np.int64), marks]
    arrays.append(seconds(ids, order) if words is None else words)
    for array in arrays:
        array.flags.writeable = False
    return SuffixArray(*arrays)


# -- files ------------------------------------------------------------------------------------


def load(folder: Path, vocab_size: int, levels: int) -> SuffixArray:
    """Memory-map the arrays of a run; shapes are checked now, places when used."""
    paths = {name: folder / f"unbounded.{name}.npy" for name in _FILES}
    ids = _map(paths["ids"], ("<i4",))
    n = len(ids)
    order = _map(paths["order"], ("<u4",), n)
    shared = _map(paths["shared"], ("|u1",), n)
    starts = np.array(_map(paths["starts"], ("<i8",), vocab_size + 1))
    marks = _map(paths["marks"], ("<u4",), levels * (strides(n) + 1)).reshape(levels, -1)
    if not n or int(ids[-1]) != END:
        raise DamagedError(f"{paths['ids']} does not end with END; train the run again")
    if starts[0] != 0 or starts[-1] != n or np.any(np.diff(starts) < 0):
        raise DamagedError(f"{paths['starts']} does not match a text of {n:,} ids; train the run again")
    words = np.asarray(_map(paths["seconds"], ("<i4",), -(-n // EVERY)))
    return finished(np.asarray(ids), np.asarray(order), np.asarray(shared), starts, np.asarray(marks), words)

"""What every line of a text costs, whatever the tokenizer, and the lines grouped into blocks.

This compares models of different tokenizers on the same pieces of text: the line of a token is the number of
line ends before it, and every tokenizer keeps those.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import END, NATS_PER_BIT, START, UNKNOWN, Encoded, Tokenizer

Array = np.ndarray[Any, np.dtype[Any]]
MOST = 200  # blocks of a text
LEAST_BYTES = 1000  # of a block, where the text is long enough
FEW = 20  # blocks of a short text


class LineCosts:
    """Sums up, piece by piece, the bits of every line: its tokens, and the spelling of its unknown words."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._lines = 0  # ended so far
        self._open = False  # the last token of the piece before ended no line
        self._parts: list[tuple[int, Array]] = []
        self._ends: dict[int, int] = {}  # line ends in a token

    def add(self, piece: Encoded, logp: Array) -> None:
        """Add one piece; a token of probability 0 makes its line infinite."""
        ids = np.asarray(piece.ids)
        if not len(ids):
            return
        ends = self._line_ends(ids)
        before = np.cumsum(ends) - ends
        bits = -np.asarray(logp, dtype=np.float64) / NATS_PER_BIT
        bits[ids == START] = 0.0
        if piece.side_nats:
            spelled = ids == UNKNOWN if piece.unknown else ids != START
            bits[spelled] += piece.side_nats / NATS_PER_BIT / np.count_nonzero(spelled)
        self._parts.append((self._lines, np.bincount(before, weights=bits)))
        self._lines += int(ends.sum())

    def lines(self, count: int) -> Array:
        """Return the bits of each of the text's lines; what follows the last belongs to it."""
        total = np.zeros(max(count, 1))
        for first, bits in self._parts:
            np.add.at(total, np.minimum(first + np.arange(len(bits)), len(total) - 1), bits)
        return total

    def _line_ends(self, ids: Array) -> Array:
        """Tell how many lines end with each token."""
        if self._tokenizer.unit == "line":
            at_end: Array = (ids == END).astype(np.int64)
            return at_end
        used, places = np.unique(ids, return_inverse=True)
        for index in used.tolist():
            if index not in self._ends:
                self._ends[index] = 0 if index == UNKNOWN else self._tokenizer.decode([index]).count("\n")
        ends = np.array([self._ends[index] for index in used.tolist()], dtype=np.int64)[places]
        is_open = np.concatenate([[self._open], (ends == 0) & (ids != START)])
        ends[(ids == END) & is_open[:-1]] = 1  # a document whose last line has no line end
        self._open = bool(is_open[-1])
        return ends


def cut(line_bytes: Array) -> Array:
    """Assign lines to blocks, from 0: about equal bytes, whole lines, as many blocks as are useful."""
    total, lines = int(np.sum(line_bytes)), len(line_bytes)
    wanted = min(MOST, lines, max(total // LEAST_BYTES, FEW))
    middle = np.cumsum(line_bytes) - np.asarray(line_bytes) / 2
    rough = np.minimum((middle * wanted / max(total, 1)).astype(np.int64), wanted - 1)
    return np.unique(rough, return_inverse=True)[1].astype(np.int64)

"""Rows of tokens scored in padded batches: rows of similar length together, long ones piece by piece.

A row is a sequence, or a whole document where a model's state is carried from line to line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import END, LanguageModel, State
from nextword.models.distributions import as_numpy

Array = npt.NDArray[Any]

BATCH = 1 << 14  # tokens of a padded batch
PIECE = 1 << 12  # a longer row is scored in pieces of this many tokens, the state carried
SIDE_BY_SIDE = 16  # this many long rows may share their pieces
ALIKE = 1.25  # where the longest is at most this many times the shortest


class Rows:
    """Scores rows with any model on the contract."""

    def __init__(self, model: LanguageModel, begin: bool) -> None:
        self.model, self.begin = model, begin

    def read_on(self, ids: Array, state: State) -> tuple[Array, State]:
        """Score one row, or a part of one, after a state (None: its beginning)."""
        state = self._start(1) if state is None else state
        return self._in_pieces(ids[None], np.array([len(ids)]), state)

    def score(self, ids: Array, starts: Array) -> Array:
        """Return log p of every token of the rows that begin at ``starts`` with START; 0 there."""
        lengths = np.diff(np.append(starts, len(ids))) - 1
        logp = np.zeros(len(ids))
        by_length = np.argsort(lengths, kind="stable")
        for first, last in _groups(lengths[by_length]):
            rows = by_length[first:last]
            T = int(lengths[rows[-1]])
            places = starts[rows][:, None] + 1 + np.arange(T)
            real = np.arange(T) < lengths[rows][:, None]
            padded = np.where(real, ids[np.minimum(places, len(ids) - 1)], END)
            found, _ = self._in_pieces(padded, lengths[rows], self._start(len(rows)))
            logp[places[real]] = found[real.ravel()]
        return logp

    def _start(self, batch: int) -> State:
        return self.model.start(batch, None, self.begin)

    def _in_pieces(self, ids_BT: Array, lengths_B: Array, state: State) -> tuple[Array, State]:
        """Score all rows together, some columns at a time; the log-probabilities come as one flat array."""
        B, T = ids_BT.shape
        size = max(1, min(PIECE, BATCH // B))
        found = [np.zeros((B, 0))]
        for at in range(0, T, size):
            part = ids_BT[:, at : at + size]
            logp_BT, state = self.model.score(part, np.clip(lengths_B - at, 0, part.shape[1]), state)
            found.append(as_numpy(logp_BT))
        return np.concatenate(found, axis=1).ravel(), state


def _groups(lengths: Array) -> Iterator[tuple[int, int]]:
    """Group rising lengths into batches: as many rows as fit, or some long ones of similar length."""
    first = 0
    while first < len(lengths):
        rest = lengths[first:]
        cost = np.arange(1, len(rest) + 1) * np.maximum(rest, 1)
        fits = int(np.searchsorted(cost, BATCH, side="right"))
        alike = int(np.searchsorted(rest, ALIKE * rest[0], side="right"))
        count = max(1, fits, min(alike, SIDE_BY_SIDE))
        yield first, first + count
        first += count

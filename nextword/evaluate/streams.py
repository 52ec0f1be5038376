"""Log-probabilities of packed ids, piece after piece, for any model and with bounded memory.

A packed stream is ``START w … END START w … END``; a piece may end anywhere and the next one goes on.
Count models score a stream in one pass; others get their sequences sorted by length, in padded batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import END, START, Encoded, LanguageModel, PackedScorer, State
from nextword.models.distributions import as_numpy

Array = npt.NDArray[Any]

BATCH = 1 << 14  # words of a padded batch
PIECE = 1 << 12  # a longer sequence is scored in pieces of so many words, the state carried
GATHER = 1 << 16  # small pieces are put together up to so many ids


class Stream:
    """Scores one stream of packed ids; what a cut sequence has already read is kept between pieces."""

    def __init__(self, model: LanguageModel, begin: bool = True) -> None:
        self.model, self.begin = model, begin
        order = getattr(model, "order", None)
        self._context = order - 1 if isinstance(order, int) else None
        self._is_packed = begin and isinstance(model, PackedScorer)
        self._tail: Array = np.empty(0, dtype=np.int32)  # the last words of a cut sequence
        self._state: State = None  # or the model's state after it

    def push(self, ids: Array) -> Array:
        """log p of every id of the next piece; 0 at START."""
        ids = as_numpy(ids)
        if not len(ids):
            return np.zeros(0)
        if self._is_packed and self._context is not None:
            return self._by_context(ids)
        return self._by_state(ids)

    def _by_context(self, ids: Array) -> Array:
        """One pass; a cut sequence needs no more than its last n-1 words."""
        joined = np.concatenate([self._tail, ids]) if len(self._tail) else ids
        logp = as_numpy(self._packed(joined))[len(self._tail) :]
        last = max(int(_last_start(joined)), len(joined) - (self._context or 0))
        self._tail = joined[:0] if joined[-1] == END else joined[last:].copy()
        return logp

    def _packed(self, ids: Array) -> Array:
        assert isinstance(self.model, PackedScorer)
        return as_numpy(self.model.score_packed(ids))

    def _by_state(self, ids: Array) -> Array:
        """Whole sequences in one pass or in batches; the two cut ones, at most, with their state."""
        starts = np.flatnonzero(ids == START)
        first = int(starts[0]) if len(starts) else len(ids)
        parts: list[Array] = []
        if first:
            parts.append(self._long(ids[:first], self._state))
        whole = len(ids) if ids[-1] == END else int(starts[-1]) if len(starts) else first
        if whole > first:
            middle = ids[first:whole]
            parts.append(self._packed(middle) if self._is_packed else self._batches(middle))
            self._state = None
        if whole < len(ids):
            parts += [np.zeros(1), self._long(ids[whole + 1 :], None)]
        elif ids[-1] == END:
            self._state = None
        return np.concatenate(parts)

    def _long(self, ids: Array, state: State) -> Array:
        """One sequence, or a part of one, in pieces."""
        state = self.model.start(1, None, self.begin) if state is None else state
        found = [np.zeros(0)]
        for at in range(0, len(ids), PIECE):
            part = ids[None, at : at + PIECE]
            logp, state = self.model.score(part, np.array([part.shape[1]]), state)
            found.append(as_numpy(logp)[0])
        self._state = state
        return np.concatenate(found)

    def _batches(self, ids: Array) -> Array:
        """Sequences of nearly one length share a batch, so that little of it is padding."""
        starts = np.flatnonzero(ids == START)
        lengths = np.diff(np.append(starts, len(ids))) - 1
        logp = np.zeros(len(ids))
        by_length = np.argsort(lengths, kind="stable")
        at = 0
        while at < len(by_length):
            rows = by_length[at : at + _rows(lengths[by_length[at:]])]
            self._batch(ids, starts[rows] + 1, lengths[rows], logp)
            at += len(rows)
        return logp

    def _batch(self, ids: Array, starts: Array, lengths: Array, logp: Array) -> None:
        T = int(lengths[-1])
        if T > PIECE:
            logp[starts[0] : starts[0] + T] = self._long(ids[starts[0] : starts[0] + T], None)
            return
        places = starts[:, None] + np.arange(T)
        real = np.arange(T) < lengths[:, None]
        padded = np.where(real, ids[np.minimum(places, len(ids) - 1)], END)
        found, _ = self.model.score(padded, lengths, self.model.start(len(starts), None, self.begin))
        logp[places[real]] = as_numpy(found)[real]


def _last_start(ids: Array) -> int:
    starts = np.flatnonzero(ids == START)
    return int(starts[-1]) if len(starts) else 0


def _rows(lengths: Array) -> int:
    """How many of these rising lengths fit into one batch, at least one."""
    if lengths[0] > PIECE:
        return 1
    cost = np.arange(1, len(lengths) + 1) * np.maximum(lengths, 1)
    fits = int(np.searchsorted(cost, BATCH, side="right"))
    return max(1, min(fits, int(np.searchsorted(lengths, PIECE, side="right"))))


def gathered(pieces: Iterable[Encoded], size: int | None = None) -> Iterator[Encoded]:
    """The same stream in fewer, larger pieces: many small documents are scored together."""
    size = GATHER if size is None else size
    waiting: list[Encoded] = []
    total = 0
    for piece in pieces:
        waiting.append(piece)
        total += len(piece.ids)
        if total >= size:
            yield _joined(waiting)
            waiting, total = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(pieces: list[Encoded]) -> Encoded:
    if len(pieces) == 1:
        return pieces[0]
    return replace(
        pieces[0],
        ids=np.concatenate([piece.ids for piece in pieces]),
        sequences=sum(piece.sequences for piece in pieces),
        words=sum(piece.words for piece in pieces),
        bytes=sum(piece.bytes for piece in pieces),
        unknown=sum(piece.unknown for piece in pieces),
        side_nats=sum(piece.side_nats for piece in pieces),
        documents=_joined_documents(pieces),
    )


def _joined_documents(pieces: list[Encoded]) -> tuple[int, ...] | None:
    """Where documents begin in all of them; None where each sequence is one."""
    found: list[int] = []
    offset = 0
    for piece in pieces:
        if piece.documents is None:
            return None
        found += [offset + place for place in piece.documents]
        offset += len(piece.ids)
    return tuple(found)

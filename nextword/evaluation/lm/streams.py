"""Log-probabilities of packed ids, piece after piece, for any model and with bounded memory.

A packed stream is ``START w … END START w … END``; a piece may end anywhere and the next one continues.
Count models score a stream in one pass, others their rows in batches, a mixture each of its models in its own
way. Where a model's state is carried over lines (`Carrier`), a row is a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import (
    END,
    START,
    Carrier,
    Encoded,
    LanguageModel,
    PackedScorer,
    State,
    context_of,
)
from nextword.evaluation.lm.batches import Rows
from nextword.mixtures.mixture import Mixture
from nextword.models.distributions import as_numpy, without_nan

Array = npt.NDArray[Any]

GATHER = 1 << 18  # small pieces are joined up to this many ids


class ScoreStream:
    """Scores one stream of packed ids; the state of a split sequence is kept between pieces.

    ``carry``: a `Carrier` keeps its state from line to line within a document, as in published perplexities.
    It needs to know where documents begin; the STARTs of other lines are then not read.
    """

    def __init__(self, model: LanguageModel, begin: bool = True, carry: bool = False) -> None:
        self.model, self.begin = model, begin
        self._parts: list[ScoreStream] = []
        if isinstance(model, Mixture):
            self._parts = [ScoreStream(part, begin, carry) for part in model.models]
        self._context = context_of(model)
        self._is_packed = begin and isinstance(model, PackedScorer)
        self._carries = carry and begin and isinstance(model, Carrier)
        self._rows = Rows(model, begin)
        self._tail: Array = np.empty(0, dtype=np.int32)  # the last tokens of a split sequence
        self._state: State = None  # or the model's state after it

    def push(self, ids: Array, documents: Iterable[int] | None = None) -> Array:
        """Return log p of every id of the next piece; 0 at START.

        ``documents``: where those STARTs stand that begin a document (`Encoded.documents`); None: all do.
        """
        ids = as_numpy(ids)
        if not len(ids):
            return np.zeros(0)
        return without_nan(self._scored(ids, documents))

    def _scored(self, ids: Array, documents: Iterable[int] | None) -> Array:
        if self._parts:
            return self._mixed(ids, documents)
        if self._is_packed and self._context is not None:
            return self._by_context(ids)
        if self._carries and documents is not None:
            return self._by_document(ids, np.fromiter(documents, np.int64))
        return self._by_state(ids)

    def _mixed(self, ids: Array, documents: Iterable[int] | None) -> Array:
        assert isinstance(self.model, Mixture)
        logp = self.model.mix([part.push(ids, documents) for part in self._parts])
        logp[ids == START] = 0.0
        return logp

    def _by_context(self, ids: Array) -> Array:
        """Score in one pass; a split sequence needs no more than its last n-1 tokens."""
        joined = np.concatenate([self._tail, ids]) if len(self._tail) else ids
        logp = as_numpy(self._packed(joined))[len(self._tail) :]
        last = max(int(_last_start(joined)), len(joined) - (self._context or 0))
        self._tail = joined[:0] if joined[-1] == END else joined[last:].copy()
        return logp

    def _packed(self, ids: Array) -> Array:
        assert isinstance(self.model, PackedScorer)
        return as_numpy(self.model.score_packed(ids))

    def _by_document(self, ids: Array, begins: Array) -> Array:
        """Score each document as a row, without the STARTs inside; END alone separates its lines."""
        is_read = ids != START
        is_read[begins] = True
        logp = np.zeros(len(ids))
        if is_read.any():
            logp[is_read] = self._by_state(ids[is_read], ends=False)
        return logp

    def _by_state(self, ids: Array, ends: bool = True) -> Array:
        """Score whole rows in one pass or in batches, and the at most two split ones with their state.

        ``ends``: an END at the end of the piece ends a row; else the row may continue.
        """
        starts = np.flatnonzero(ids == START)
        first = int(starts[0]) if len(starts) else len(ids)
        parts: list[Array] = []
        if first:
            parts.append(self._read_on(ids[:first], self._state))
        is_whole = ends and ids[-1] == END
        whole = len(ids) if is_whole else int(starts[-1]) if len(starts) else first
        if whole > first:
            middle = ids[first:whole]
            inside = starts[starts < whole] - first
            parts.append(self._packed(middle) if self._is_packed else self._rows.score(middle, inside))
        if whole < len(ids):
            parts += [np.zeros(1), self._read_on(ids[whole + 1 :], None)]
        if is_whole:
            self._state = None
        return np.concatenate(parts)

    def _read_on(self, ids: Array, state: State) -> Array:
        logp, self._state = self._rows.read_on(ids, state)
        return logp


def _last_start(ids: Array) -> int:
    starts = np.flatnonzero(ids == START)
    return int(starts[-1]) if len(starts) else 0


def gathered(pieces: Iterable[Encoded], size: int | None = None) -> Iterator[Encoded]:
    """Yield the same stream in fewer, larger pieces: many small documents are scored together."""
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
        literal=sum(piece.literal for piece in pieces),
        side_nats=sum(piece.side_nats for piece in pieces),
        documents=_joined_documents(pieces),
    )


def _joined_documents(pieces: list[Encoded]) -> tuple[int, ...] | None:
    """Tell where documents begin in all of them; None where each sequence is one."""
    found: list[int] = []
    offset = 0
    for piece in pieces:
        if piece.documents is None:
            return None
        found += [offset + place for place in piece.documents]
        offset += len(piece.ids)
    return tuple(found)

"""The plain cache: tokens that were read recently are likely again, whatever the model.

Kuhn & De Mori 1990, "A cache-based natural language model": p(w) ∝ Σ_a d^a 1[w = x_{t-1-a}] over the last N
tokens, d = 1 for plain counts, less for a memory that fades. It needs neither a network nor torch; the neural
cache (`mixtures.cache`) with θ = 0 is the same with d = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from nextword.core.contracts import Array, State, Tokenizer, never_next, refuse_source
from nextword.core.settings import Settings
from nextword.mixtures.memory import Part, Witness
from nextword.models.distributions import Floats, as_numpy
from nextword.store.reading import RunFolder

Ints = npt.NDArray[np.int64]
NOTHING = -1  # where there is no token
HELD = 1 << 22  # comparisons of tokens held at once


class RecentSettings(Settings):
    """How much is remembered, and how fast it fades."""

    size: int = Field(1000, ge=1, le=1_000_000, description="tokens that are remembered, N")
    decay: float = Field(1.0, gt=0, le=1, description="weight of a token relative to the one read after it")


class RecentState(NamedTuple):
    """The last tokens, the newest at the right; ``count_B`` of them are real."""

    words_BM: Ints
    count_B: Ints


class RecentWords:
    """A LanguageModel of the last N tokens; the first token of a text is uniform."""

    name = "recent"
    is_probability = True
    context = None

    def __init__(self, settings: RecentSettings, vocab_size: int, closed: bool = False) -> None:
        self.size, self.decay, self.vocab_size = settings.size, settings.decay, vocab_size
        possible = np.ones(vocab_size, bool)
        possible[list(never_next(closed))] = False
        self.even_V: Floats = possible / possible.sum()
        self.fades_N: Floats = self.decay ** np.arange(self.size - 1, -1, -1.0)  # the newest is the last
        self.totals_N: Floats = np.concatenate([[0.0], np.cumsum(self.fades_N[::-1])])  # of the last n tokens

    def start(self, batch: int, source: Any = None, begin: bool = True) -> RecentState:
        """Return a state that has read nothing."""
        refuse_source(source)
        return RecentState(np.zeros((batch, 0), np.int64), np.zeros(batch, np.int64))

    def carry(self, state: State) -> State:
        """Carry the state to the next line of the document."""
        return state

    def next(self, state: RecentState) -> Array:
        """Return the weights of the tokens read recently."""
        p_BV = np.tile(self.even_V, (len(state.count_B), 1))
        for row, count in enumerate(state.count_B.tolist()):
            if count:
                words, fades = state.words_BM[row, -count:], self.fades_N[-count:]
                p_BV[row] = np.bincount(words, fades, self.vocab_size) / self.totals_N[count]
        with np.errstate(divide="ignore"):
            return np.log(p_BV)

    def step(self, ids_B: Array, state: RecentState) -> tuple[Array, RecentState]:
        """Read one token per row."""
        ids_B = as_numpy(ids_B, np.int64)
        after = self._read(ids_B[:, None], np.ones(len(ids_B), np.int64), state)
        return self.next(after), after

    def score(
        self, ids_BT: Array, lengths_B: Array, state: RecentState | None = None
    ) -> tuple[Array, RecentState]:
        """Score a few tokens at a time, each compared with the N before it."""
        ids_BT, lengths_B = as_numpy(ids_BT, np.int64), as_numpy(lengths_B, np.int64)
        B, T = ids_BT.shape
        state = self.start(B) if state is None else state
        count_BT = np.minimum(self.size, state.count_B[:, None] + np.arange(T))
        N = max(1, int(count_BT.max(initial=0)))  # the most tokens before any token
        before_BN = _right(state, N)
        words_BS = np.concatenate([before_BN, ids_BT], axis=1)
        windows_BTN = np.lib.stride_tricks.sliding_window_view(words_BS, N, axis=1)[:, :T]
        hits_BT = np.empty((B, T))
        size = max(1, HELD // max(1, B * N))
        for at in range(0, T, size):
            same_BQN = windows_BTN[:, at : at + size] == ids_BT[:, at : at + size, None]
            hits_BT[:, at : at + size] = same_BQN.astype(np.float64) @ self.fades_N[-N:]
        p_BT = np.where(
            count_BT > 0, hits_BT / np.maximum(self.totals_N[count_BT], 1e-300), self.even_V[ids_BT]
        )
        real_BT = np.arange(T) < lengths_B[:, None]
        with np.errstate(divide="ignore"):
            return np.where(real_BT, np.log(p_BT), 0.0), self._read(ids_BT, lengths_B, state)

    def reorder(self, state: RecentState, rows_B: Array) -> RecentState:
        """Return these rows."""
        rows_B = as_numpy(rows_B, np.int64)
        return RecentState(state.words_BM[rows_B], state.count_B[rows_B])

    def rows(self, state: RecentState) -> int:
        """Return how many rows a state has."""
        return len(state.count_B)

    def join(self, states: Sequence[RecentState]) -> RecentState:
        """Return the rows of several states in one."""
        M = max(state.words_BM.shape[1] for state in states)
        words_BM = np.concatenate([_right(state, M) for state in states])
        return RecentState(words_BM, np.concatenate([state.count_B for state in states]))

    def explain(self, state: RecentState, word: int, top: int = 5) -> list[Part]:
        """Return where the token stood recently, and with what weight."""
        count = int(state.count_B[0])
        if not count:
            return [Part(self.name, 1.0, float(self.even_V[word]))]
        weight_M = self.fades_N[-count:] * (state.words_BM[0, -count:] == word) / self.totals_N[count]
        best = np.argsort(-weight_M, kind="stable")[:top]
        found = tuple(
            Witness(word, float(weight_M[at]), back=count - int(at)) for at in best if weight_M[at] > 0
        )
        return [Part(self.name, 1.0, float(weight_M.sum()), found)]

    def _read(self, ids_BT: Ints, lengths_B: Ints, state: RecentState) -> RecentState:
        """Return the last N real tokens of each row, the newest at the right."""
        count_B = np.minimum(self.size, state.count_B + lengths_B)
        M = int(count_B.max(initial=0))
        words_BS = np.concatenate([state.words_BM, ids_BT], axis=1)
        ends_B = state.words_BM.shape[1] + lengths_B
        places_BM = np.maximum(ends_B[:, None] - M + np.arange(M), 0)
        return RecentState(np.take_along_axis(words_BS, places_BM, axis=1), count_B)


def _right(state: RecentState, size: int) -> Ints:
    """Return the last tokens of each row, right-aligned in this many places; else `NOTHING`."""
    B, M = state.words_BM.shape
    found_BN = np.full((B, size), NOTHING)
    kept = min(M, size)
    if kept:
        real_BM = np.arange(kept) >= kept - state.count_B[:, None]
        found_BN[:, size - kept :] = np.where(real_BM, state.words_BM[:, M - kept :], NOTHING)
    return found_BN


class RecentKind:
    """The plain cache as loading sees it."""

    name = "recent"
    Settings = RecentSettings
    reads_features = False

    def load(self, folder: RunFolder, settings: RecentSettings, tokenizer: Tokenizer) -> RecentWords:
        """Return the cache, which has nothing but its settings."""
        return RecentWords(settings, tokenizer.vocab_size, tokenizer.closed)

    def describe(self, settings: RecentSettings) -> str:
        """Describe the cache in one phrase."""
        fades = "" if settings.decay == 1 else f", each weighing {settings.decay:g} of the one after it"
        return f"a cache of the last {settings.size:,} tokens{fades}"


RECENT = RecentKind()
"""Tokens of the text read last, whatever came before them (the plain cache)."""

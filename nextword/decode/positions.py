"""The most likely tokens at every position of a text, for every family.

`score` gives log p of the tokens that are there. Who also asks what else the model would have said needs the
whole distribution at each place: a network computes them for all positions at once, others step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nextword.core.contracts import Advancer, Array, Distributor, LanguageModel, Reader, State
from nextword.models.distributions import as_numpy, without_nan

Alternatives = tuple[tuple[int, float], ...]  # pairs (id, log p), the most likely first
Found = list[tuple[float, Alternatives]]  # for each position: log p of its token, and the alternatives
_NUMBERS = 1 << 23  # of distributions in memory at once


def reading(model: LanguageModel) -> Callable[[Array, Array, State], State]:
    """Return how a model reads tokens whose scores nobody asks for."""
    if isinstance(model, Advancer):
        return model.advance
    if isinstance(model, Reader):
        return lambda ids_BT, lengths_B, state: model.read(ids_BT, lengths_B, state)[1]
    return lambda ids_BT, lengths_B, state: model.score(ids_BT, lengths_B, state)[1]


def score_positions(
    model: LanguageModel, ids_BT: Array, lengths_B: Array, state: State, tops: Sequence[int]
) -> tuple[list[Found], State]:
    """Score every token of every row, with so many alternatives a row; return them and the state after.

    Where a row has alternatives, its scores come from the same distributions: the most likely token has
    exactly the largest of its alternatives.
    """
    if not any(tops):
        logp, state = model.score(ids_BT, lengths_B, state)
        logp_BT = without_nan(as_numpy(logp, np.float64))
        return [
            [(p, ()) for p in logp_T[:n].tolist()] for logp_T, n in zip(logp_BT, lengths_B, strict=True)
        ], state
    T = max(1, _NUMBERS // (model.vocab_size * len(ids_BT)))
    found: list[Found] = [[] for _ in ids_BT]
    for first in range(0, int(max(lengths_B)), T):
        piece_BT = ids_BT[:, first : first + T]
        piece_B = np.clip(lengths_B - first, 0, piece_BT.shape[1])
        logps, state = distributions(model, piece_BT, piece_B, state)
        for row, logp_NV in enumerate(logps):
            words_N = piece_BT[row, : len(logp_NV)]
            own_N = logp_NV[np.arange(len(words_N)), words_N].tolist()
            found[row] += zip(own_N, best_of(logp_NV, [tops[row]] * len(words_N)), strict=True)
    return found, state


def distributions(
    model: LanguageModel, ids_BT: Array, lengths_B: Array, state: State
) -> tuple[list[npt.NDArray[Any]], State]:
    """Return ``logp_NV`` before each of the N real tokens of every row, and the state after the last."""
    if isinstance(model, Distributor):
        logp_NV, state = model.distributions(ids_BT, lengths_B, state)
        logp = without_nan(as_numpy(logp_NV, np.float64))
        return np.split(logp, np.cumsum(lengths_B)[:-1]), state
    made, states = [], []
    for row, length in enumerate(lengths_B.tolist()):
        one = model.reorder(state, np.array([row], dtype=np.int64))
        rows = []
        logp_1V = model.next(one) if length else None
        for at in range(length):
            rows.append(without_nan(as_numpy(logp_1V, np.float64))[0])
            logp_1V, one = model.step(ids_BT[row, at : at + 1], one)
        made.append(np.array(rows).reshape(length, model.vocab_size))
        states.append(one)
    return made, model.join(states)


def best_of(logp_RV: npt.NDArray[Any], counts: Sequence[int]) -> list[Alternatives]:
    """Return the most likely tokens of each row, as many as asked for; among equals the lower ids."""
    most = min(max(counts, default=0), logp_RV.shape[-1])
    if not most:
        return [()] * len(counts)
    made: list[Alternatives] = []
    for logp_V, count in zip(logp_RV, counts, strict=True):
        count = min(count, len(logp_V))
        if not count:
            made.append(())
            continue
        least = np.partition(logp_V, len(logp_V) - count)[len(logp_V) - count]
        words = np.flatnonzero(logp_V >= least)
        words = words[np.argsort(-logp_V[words], kind="stable")][:count]
        made.append(tuple(zip(words.tolist(), logp_V[words].tolist(), strict=True)))
    return made

"""What `rows`, `join` and `reorder` must do for any model on the contract."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nextword.core.contracts import LanguageModel, State
from nextword.models.distributions import as_numpy


def states_after(
    model: LanguageModel, texts: Sequence[Sequence[Sequence[int]]], begin: Sequence[bool]
) -> list[State]:
    """Read some texts into each state, a row a text; where ``begin`` is False without START."""
    return [
        model.score(*padded(rows), model.start(len(rows), begin=with_start))[1]
        for rows, with_start in zip(texts, begin, strict=True)
    ]


def padded(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """``ids_BT`` and ``lengths_B`` of rows of different lengths."""
    lengths_B = np.array([len(row) for row in rows], dtype=np.int64)
    ids_BT = np.zeros((len(rows), int(lengths_B.max(initial=0))), dtype=np.int64)
    for row, ids in enumerate(rows):
        ids_BT[row, : len(ids)] = ids
    return ids_BT, lengths_B


def check_joined(
    model: LanguageModel, states: Sequence[State], rows: Sequence[Sequence[int]], tolerance: float
) -> None:
    """Hold the joined states to the separate ones: rows, `next`, `step`, `score`, and out again.

    ``rows``: for each row of all states what is read next, at least one token.
    """
    counts = [model.rows(state) for state in states]
    edges = np.cumsum([0, *counts])
    assert edges[-1] == len(rows)
    parts = [slice(int(first), int(end)) for first, end in pairwise(edges)]
    apart = [_answers(model, state, rows[part]) for state, part in zip(states, parts, strict=True)]
    joined = model.join(states)
    assert model.rows(joined) == len(rows)
    together = _answers(model, joined, rows)
    for kind, found in together.items():
        width = max(each[kind].shape[1] for each in apart)
        expected = np.concatenate([_widened(each[kind], width) for each in apart])
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=kind)
    for state, part, expected in zip(states, parts, apart, strict=True):
        back = model.reorder(joined, np.arange(part.start, part.stop))
        assert model.rows(back) == model.rows(state)
        for again in (back, state):  # the rows that leave, and the old state, which stays as it was
            for kind, found in _answers(model, again, rows[part]).items():
                np.testing.assert_allclose(
                    found, expected[kind], rtol=tolerance, atol=tolerance, err_msg=kind
                )


def _answers(model: LanguageModel, state: State, rows: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Everything that a state can be asked, and what it says after one more token and after all."""
    first_B = np.array([row[0] for row in rows], dtype=np.int64)
    step_BV, after = model.step(first_B, state)
    ids_BT, lengths_B = padded(rows)
    logp_BT, end = model.score(ids_BT, lengths_B, state)
    twice_BV, _ = model.step(first_B, after)
    return {
        "next": _array(model.next(state)),
        "step": _array(step_BV),
        "second step": _array(twice_BV),
        "score": _array(logp_BT),
        "next after score": _array(model.next(end)),
    }


def _array(values: Any) -> np.ndarray:
    return np.array(as_numpy(values, np.float64))


def _widened(values_BX: np.ndarray, width: int) -> np.ndarray:
    """Scores of shorter batches are 0 past their last column."""
    return np.pad(values_BX, ((0, 0), (0, width - values_BX.shape[1])))

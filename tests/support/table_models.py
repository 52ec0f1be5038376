"""A reference model on the contract: an exact table p(next word | last word)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nextword.core.contracts import START, refuse_source


class TableModel:
    """A bigram table in NumPy; the state is the last word of each row."""

    def __init__(self, table_VV: np.ndarray) -> None:
        self.vocab_size = len(table_VV)
        with np.errstate(divide="ignore"):
            self.logp_VV = np.log(table_VV)

    def start(self, batch: int, source: Any = None, begin: bool = True) -> np.ndarray:
        refuse_source(source)
        return np.full(batch, START if begin else 0)

    def next(self, state: np.ndarray) -> np.ndarray:
        return self.logp_VV[state]

    def step(self, ids_B: Any, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.logp_VV[np.asarray(ids_B)], np.asarray(ids_B)

    def score(self, ids_BT: Any, lengths_B: Any, state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        ids_BT, lengths_B = np.asarray(ids_BT), np.asarray(lengths_B)
        state = self.start(len(ids_BT)) if state is None else state
        all_BT = np.concatenate([state[:, None], ids_BT], axis=1)
        real_BT = np.arange(ids_BT.shape[1]) < lengths_B[:, None]
        logp_BT = np.where(real_BT, self.logp_VV[all_BT[:, :-1], ids_BT], 0.0)
        return logp_BT, all_BT[np.arange(len(all_BT)), lengths_B]

    def reorder(self, state: np.ndarray, rows_B: Any) -> np.ndarray:
        return state[np.asarray(rows_B)]

    def rows(self, state: np.ndarray) -> int:
        return len(state)

    def join(self, states: Any) -> np.ndarray:
        return np.concatenate(states)


class PackedTableModel(TableModel):
    """The same, and it scores packed streams."""

    def score_packed(self, ids: Any) -> np.ndarray:
        ids = np.asarray(ids)
        before = np.concatenate([[START], ids[:-1]])
        return np.where(ids == START, 0.0, self.logp_VV[before, ids])


def random_table(size: int, seed: int, sharp: float = 1.0) -> np.ndarray:
    """Random rows that sum to 1, START excluded."""
    weights = np.random.default_rng(seed).gamma(1 / sharp, size=(size, size)) + 1e-6
    weights[:, START] = 0.0
    return weights / weights.sum(axis=1, keepdims=True)


def make_table_model(size: int = 7, seed: int = 0, packed: bool = True, sharp: float = 1.0) -> TableModel:
    """A model of a random table."""
    return (PackedTableModel if packed else TableModel)(random_table(size, seed, sharp))

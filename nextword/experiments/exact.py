"""Exact search: the most likely text of n words by any model, found by always extending the best so far.

argmax P(w_1 … w_n) [MAUSAM "Neural Language Model: Greedy Decoding": "computing this is prohibitive"]. A text
never gets more likely with another word, so the first complete text found is the most likely (Dijkstra 1959).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nextword.core.contracts import END, LanguageModel, State
from nextword.experiments.small import Floats, Ints
from nextword.models.distributions import as_numpy


class BestSequence(NamedTuple):
    """The most likely text; ``looked`` is the number of distributions that were computed."""

    ids: tuple[int, ...]
    logprob: float
    looked: int


@dataclass(frozen=True)
class SearchNode:
    """A text so far: its cost (-log p), and the words that can follow, the most likely first."""

    ids: tuple[int, ...]
    cost: float
    state: State
    logp_V: Floats
    order_V: Ints

    def child(self, rank: int) -> float | None:
        """Return the cost with the follower of this rank; None where there is none."""
        if rank >= len(self.order_V) or not np.isfinite(self.logp_V[self.order_V[rank]]):
            return None
        return self.cost - float(self.logp_V[self.order_V[rank]])


def search(
    model: LanguageModel,
    prompt: Sequence[int],
    length: int,
    forbidden: Iterable[int] = (),
    most: int = 20_000,
) -> BestSequence | None:
    """Find the most likely continuation of ``length`` tokens, or fewer with END; None after ``most``."""
    banned = list(forbidden)
    state = model.start(1)
    if len(prompt):
        state = model.score(np.array([list(prompt)]), np.array([len(prompt)]), state)[1]
    root = _node((), 0.0, state, as_numpy(model.next(state), np.float64)[0], banned)
    waiting: list[tuple[float, int, int, SearchNode]] = []
    number, looked = 0, 1
    _push(waiting, root, 0, number)
    while waiting and looked < most:
        cost, _, rank, parent = heapq.heappop(waiting)
        number += 1
        _push(waiting, parent, rank + 1, number)  # the next best in its place
        word = int(parent.order_V[rank])
        ids = (*parent.ids, word)
        if len(ids) == length or word == END:
            return BestSequence(ids, -cost, looked)
        logp_1V, after = model.step(np.array([word]), parent.state)
        looked, number = looked + 1, number + 1
        _push(waiting, _node(ids, cost, after, as_numpy(logp_1V, np.float64)[0], banned), 0, number)
    return None


def _node(ids: tuple[int, ...], cost: float, state: State, logp_V: Floats, banned: list[int]) -> SearchNode:
    logp_V = logp_V.copy()
    logp_V[banned] = -np.inf
    return SearchNode(ids, cost, state, logp_V, np.argsort(-logp_V))


def _push(
    waiting: list[tuple[float, int, int, SearchNode]], node: SearchNode, rank: int, number: int
) -> None:
    cost = node.child(rank)
    if cost is not None:
        heapq.heappush(waiting, (cost, number, rank, node))

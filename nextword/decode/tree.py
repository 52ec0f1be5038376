"""The tree of a search: every token that was kept on the way, recorded while a model is asked.

[MAUSAM "Beam search"]. The search is the one that `generate` does; the tree is made of the rows that are kept
and the tokens that they read, and of the last tokens of the finished texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nextword.core.contracts import Array, LanguageModel, State, Tokenizer
from nextword.decode.generate import Generated, collect, generate
from nextword.decode.settings import DecodeSettings
from nextword.models.distributions import Floats, as_numpy


class Branch(NamedTuple):
    """A token of the tree: where its parent stands in the list (-1: it is the first), and its log p."""

    parent: int
    id: int
    logprob: float
    path: tuple[int, ...]  # the tokens up to it


class Recorded:
    """A model that records which rows are kept and which tokens are read; it is not prepared for speed."""

    def __init__(self, model: LanguageModel) -> None:
        self.model, self.vocab_size = model, model.vocab_size
        self.steps: list[tuple[list[int], list[int]]] = []  # of each step the parents' rows, and the tokens
        self.logps: list[Floats] = []  # before each step, ``logp_RV``
        self._rows: list[int] | None = None

    def start(self, batch: int, source: Any = None, begin: bool = True) -> State:
        """Do as the model does."""
        return self.model.start(batch, source, begin)

    def next(self, state: State) -> Array:
        """Note the first distribution."""
        found = self.model.next(state)
        self.logps.append(as_numpy(found, np.float64))
        return found

    def reorder(self, state: State, rows_B: Array) -> State:
        """Note which rows continue."""
        self._rows = [int(row) for row in rows_B]
        return self.model.reorder(state, rows_B)

    def step(self, ids_B: Array, state: State) -> tuple[Array, State]:
        """Note which tokens they read."""
        words = [int(word) for word in ids_B]
        self.steps.append((self._rows if self._rows is not None else list(range(len(words))), words))
        self._rows = None
        found, after = self.model.step(ids_B, state)
        self.logps.append(as_numpy(found, np.float64))
        return found, after

    def score(self, ids_BT: Array, lengths_B: Array, state: State = None) -> tuple[Array, State]:
        """Do as the model does."""
        return self.model.score(ids_BT, lengths_B, state)

    def rows(self, state: State) -> int:
        """Do as the model does."""
        return self.model.rows(state)

    def join(self, states: Sequence[State]) -> State:
        """Do as the model does."""
        return self.model.join(states)

    def paths(self, texts: Sequence[Generated]) -> dict[tuple[int, ...], float]:
        """Return all kept paths, those of finished texts included, with log p of the last token of each."""
        found: dict[tuple[int, ...], float] = {}
        rows: list[tuple[int, ...]] = [()]
        for (parents, words), logp_RV in zip(self.steps, self.logps, strict=False):
            after = []
            for parent, word in zip(parents, words, strict=True):
                path = (*rows[parent], word)
                found[path] = float(logp_RV[parent, word])
                after.append(path)
            rows = after
        for text in texts:
            for length in range(1, len(text.ids) + 1):
                found.setdefault(text.ids[:length], text.logprobs[length - 1])
        return found


def search_tree(
    model: LanguageModel,
    prompt: Sequence[int],
    settings: DecodeSettings,
    tokenizer: Tokenizer | None = None,
    source: Any = None,
) -> tuple[list[Generated], list[Branch]]:
    """Search from one prompt; return the texts and the tree, parents first and likely branches first."""
    recorded = Recorded(model)
    texts = collect(generate(recorded, [prompt], settings, tokenizer, source))
    paths = recorded.paths(texts)
    order = sorted(paths, key=lambda path: (len(path), [-paths[path[: n + 1]] for n in range(len(path))]))
    place = {path: number for number, path in enumerate(order)}
    return texts, [Branch(place.get(path[:-1], -1), path[-1], paths[path], path) for path in order]

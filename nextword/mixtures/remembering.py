"""A network with memories beside it: one linear mixture whose keys are the network's own features.

p(w) = λ_0 p_network(w) + Σ_k λ_k p_k(w): Grave et al. 2017 (cache), Khandelwal et al. 2020 (neighbours).
Where a memory has no answer, as at the beginning of a text, its weight goes to the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nextword.core.contracts import Array, Carrier, State
from nextword.mixtures.memory import Memory, Part
from nextword.models.network import NeuralLanguageModel, NeuralState


class RememberingState(NamedTuple):
    """The network's state, and what each memory remembers."""

    model: NeuralState
    memories: tuple[State, ...]


class Remembering:
    """A LanguageModel: a network and its memories; ``weights`` has the network's first."""

    is_probability = True

    def __init__(
        self, model: NeuralLanguageModel, memories: Sequence[Memory], weights: Sequence[float]
    ) -> None:
        assert len(weights) == len(memories) + 1
        assert min(weights) >= 0
        self.model, self.memories = model, tuple(memories)
        self.weights = tuple(weight / sum(weights) for weight in weights)
        self.vocab_size = model.vocab_size
        if isinstance(model, Carrier):  # only then is it a `Carrier` with its memories
            self.carry: Callable[[State], State] = _same

    @property
    def context(self) -> int | None:
        """Return None: a memory may use any token before."""
        return None

    @property
    def parameters(self) -> int:
        """Return the number of learned weights: the network's."""
        return self.model.parameters

    def ready(self) -> None:
        """Prepare for many steps."""
        self.model.ready()

    def deterministic(self) -> AbstractContextManager[None]:
        """Make the same tokens give the same numbers to the last bit."""
        return self.model.deterministic()

    @torch.inference_mode()
    def start(self, batch: int, source: Any = None, begin: bool = True) -> RememberingState:
        """Return a state whose network has read START and whose memories are empty."""
        return RememberingState(
            self.model.start(batch, source, begin), tuple(memory.start(batch) for memory in self.memories)
        )

    @torch.inference_mode()
    def next(self, state: RememberingState) -> Tensor:
        """Return log Σ λ p of every token."""
        return self._next(self.model.next(state.model), state)

    def _next(self, logp_BV: Tensor, state: RememberingState) -> Tensor:
        """Mix the network's log p with what the memories predict."""
        said = []
        for memory, part in zip(self.memories, state.memories, strict=True):
            other_BV, says_B = memory.next(state.model.feature_BD, part, self.vocab_size)
            said.append((other_BV, says_B[:, None]))
        return self.mix(logp_BV, said)

    @torch.inference_mode()
    def step(self, ids_B: Array, state: RememberingState) -> tuple[Tensor, RememberingState]:
        """Let every memory remember the token with the feature before it, and the network read it."""
        ids_B1 = self._ids(ids_B)[:, None]
        before_B1D, ones_B = state.model.feature_BD[:, None], torch.ones_like(ids_B1[:, 0])
        memories = tuple(
            memory.read(before_B1D, ids_B1, ones_B, part)
            for memory, part in zip(self.memories, state.memories, strict=True)
        )
        logp_BV, model = self.model.step(ids_B, state.model)
        after = RememberingState(model, memories)
        return self._next(logp_BV, after), after

    @torch.inference_mode()
    def score(
        self, ids_BT: Array, lengths_B: Array, state: RememberingState | None = None
    ) -> tuple[Tensor, RememberingState]:
        """Let the network read all tokens at once; the memories look its features up."""
        ids_BT, lengths_B = self._ids(ids_BT), self._ids(lengths_B)
        state = self.start(len(ids_BT)) if state is None else state
        before_BTD, model = self.model.read(ids_BT, lengths_B, state.model)
        logp_BT = self.model.score_features(before_BTD, ids_BT, lengths_B)
        logp_BT, memories = self.recall(logp_BT, before_BTD, ids_BT, lengths_B, state.memories)
        return logp_BT, RememberingState(model, memories)

    @torch.inference_mode()
    def recall(
        self, logp_BT: Tensor, before_BTD: Tensor, ids_BT: Tensor, lengths_B: Tensor, states: Sequence[State]
    ) -> tuple[Tensor, tuple[State, ...]]:
        """Mix the network's log p with what the memories predict; return also the new memories."""
        said, after = [], []
        for memory, part in zip(self.memories, states, strict=True):
            found_BT, says_BT, now = memory.score(before_BTD, ids_BT, lengths_B, part)
            said.append((found_BT, says_BT))
            after.append(now)
        real_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device) < lengths_B[:, None]
        return torch.where(real_BT, self.mix(logp_BT, said), 0.0), tuple(after)

    @torch.inference_mode()
    def reorder(self, state: RememberingState, rows_B: Array) -> RememberingState:
        """Keep these rows."""
        rows_B = self._ids(rows_B)
        memories = (
            memory.reorder(part, rows_B) for memory, part in zip(self.memories, state.memories, strict=True)
        )
        return RememberingState(self.model.reorder(state.model, rows_B), tuple(memories))

    def rows(self, state: RememberingState) -> int:
        """Return how many rows a state has."""
        return self.model.rows(state.model)

    @torch.inference_mode()
    def join(self, states: Sequence[RememberingState]) -> RememberingState:
        """Return the rows of several states in one."""
        parts = zip(*(state.memories for state in states), strict=True)
        memories = tuple(memory.join(part) for memory, part in zip(self.memories, parts, strict=True))
        return RememberingState(self.model.join([state.model for state in states]), memories)

    def mix(self, logp: Tensor, said: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Compute log Σ λ p; ``said``: log p and whether there is an answer, one pair per memory."""
        own = torch.full_like(logp, self.weights[0])
        terms = []
        for weight, (other, says) in zip(self.weights[1:], said, strict=True):
            own = torch.where(says, own, own + weight)
            terms.append(torch.where(says, other + _log(weight), -torch.inf))
        return torch.logsumexp(torch.stack([logp + own.log(), *terms]), dim=0)

    @torch.inference_mode()
    def explain(self, state: RememberingState, word: int, top: int = 5) -> list[Part]:
        """Return what the network and each memory predict for a token in the only row."""
        own, parts = self.weights[0], []
        for weight, memory, part in zip(self.weights[1:], self.memories, state.memories, strict=True):
            found = memory.explain(state.model.feature_BD, part, word, top)
            if found is None:
                own += weight
                parts.append(Part(memory.name, 0.0, 0.0))
            else:
                parts.append(Part(memory.name, weight, *found))
        return [Part("network", own, float(self.model.next(state.model)[0, word].exp())), *parts]

    @torch.inference_mode()
    def advance(self, ids_BT: Array, lengths_B: Array, state: RememberingState) -> RememberingState:
        """Return the state after the tokens; nothing is looked up."""
        ids_BT, lengths_B = self._ids(ids_BT), self._ids(lengths_B)
        before_BTD, model = self.model.read(ids_BT, lengths_B, state.model)
        memories = (
            memory.read(before_BTD, ids_BT, lengths_B, part)
            for memory, part in zip(self.memories, state.memories, strict=True)
        )
        return RememberingState(model, tuple(memories))

    def _ids(self, ids: Array) -> Tensor:
        found = torch.as_tensor(ids if isinstance(ids, Tensor) else np.asarray(ids))
        return found.to(self.model.network.device, torch.int64)


def _log(weight: float) -> float:
    return float(np.log(weight)) if weight > 0 else -np.inf


def _same(state: State) -> State:
    """Continue with the next line after END."""
    return state

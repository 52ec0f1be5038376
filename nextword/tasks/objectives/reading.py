"""How a batch is read: a row at once, position by position, or twice.

Position by position is the lecture's picture of a recurrent model [IITD-1 "A RNN Language Model"] and slow;
it is needed if something happens between two positions (random truncation, the model's own tokens).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nextword.blocks.states import State
from nextword.core.contracts import START
from nextword.models.network import Head, Network, is_recurrent
from nextword.models.training import Bptt, Forcing
from nextword.tasks.objectives.bptt import Between, RandomCut

Resets = npt.NDArray[np.bool_] | None


def _unchanged(state: State) -> State:
    return state


class Reader(Protocol):
    """Computes the features after each position, and the state after the last."""

    def read(self, network: Network, ids_BT: Tensor, resets_BT: Resets, state: State) -> tuple[Tensor, State]:
        """Read a piece of a batch; ``resets_BT``: the state is reset before these positions."""
        ...


class AtOnce:
    """Reads whole rows; they are cut where a document begins in one of them."""

    def read(self, network: Network, ids_BT: Tensor, resets_BT: Resets, state: State) -> tuple[Tensor, State]:
        """Read a batch in as few pieces as the resets allow."""
        places = [] if resets_BT is None else np.flatnonzero(resets_BT.any(axis=0)).tolist()
        if resets_BT is None or not places or not is_recurrent(network):
            return network.read(ids_BT, state)
        found = []
        for first, last in _between([0, *places, ids_BT.shape[1]]):
            if first in places:
                state = reset_rows(network, state, resets_BT[:, first])
            features_BTD, state = network.read(ids_BT[:, first:last], state)
            found.append(features_BTD)
        return (found[0] if len(found) == 1 else torch.cat(found, dim=1)), state


@dataclass(frozen=True)
class OneByOne:
    """Reads position by position: ``between`` changes the state, ``own`` replaces tokens of the text."""

    between: Between = field(default=_unchanged)
    own: OwnTokens | None = None

    def read(self, network: Network, ids_BT: Tensor, resets_BT: Resets, state: State) -> tuple[Tensor, State]:
        """Read a batch one position after another."""
        found: list[Tensor] = []
        for at in range(ids_BT.shape[1]):
            if resets_BT is not None and resets_BT[:, at].any():
                state = reset_rows(network, state, resets_BT[:, at])
            ids_B = ids_BT[:, at]
            if self.own is not None and found:
                ids_B = self.own.mix(ids_B, self.own.choose(network, found[-1][:, 0]))
            features_B1D, state = network.read(ids_B[:, None], state)
            state = self.between(state)
            found.append(features_B1D)
        return torch.cat(found, dim=1), state


@dataclass(frozen=True)
class TwoPasses:
    """Reads the text without a gradient, then again, mixed with the tokens that the model predicted."""

    own: OwnTokens
    once: AtOnce = field(default_factory=AtOnce)

    def read(self, network: Network, ids_BT: Tensor, resets_BT: Resets, state: State) -> tuple[Tensor, State]:
        """Read a batch in two passes."""
        with torch.no_grad():
            features_BTD, _ = self.once.read(network, ids_BT, resets_BT, state)
        own_BT = self.own.choose(network, features_BTD.flatten(0, 1)).view(ids_BT.shape)
        mixed_BT = ids_BT.clone()
        mixed_BT[:, 1:] = self.own.mix(ids_BT[:, 1:], own_BT[:, :-1])
        return self.once.read(network, mixed_BT, resets_BT, state)


def make_reader(network: Network, bptt: Bptt, forcing: Forcing, own: OwnTokens) -> Reader:
    """Make the fastest reader that does what the settings ask."""
    own_tokens = None if forcing.kind == "teacher" else own
    if bptt.kind == "random":
        return OneByOne(RandomCut(bptt.keep), own_tokens)
    if own_tokens is None:
        return AtOnce()
    return OneByOne(own=own_tokens) if is_recurrent(network) else TwoPasses(own_tokens)


def reset_rows(network: Any, state: State, rows_B: npt.NDArray[np.bool_]) -> State:
    """Reset these rows of a state, as if they had read nothing."""
    return network.reset(state, torch.from_numpy(np.ascontiguousarray(rows_B)).to(network.device))


def _between(places: list[int]) -> list[tuple[int, int]]:
    distinct = sorted(set(places))
    return list(pairwise(distinct))


_ROWS = 512  # distributions in memory at once


def truth_share(forcing: Forcing, progress: float) -> float:
    """Return the probability that the true token is read; i counts hundredths of the training."""
    i, k = 100 * progress, forcing.value
    if forcing.kind == "teacher":
        return 1.0
    if forcing.kind == "free":
        return 0.0
    if forcing.schedule == "linear":
        return 1 - (1 - k) * progress
    if forcing.schedule == "exponential":
        return float(k**i)
    return k / (k + math.exp(min(i / k, 700.0)))


@dataclass(frozen=True)
class OwnTokens:
    """Chooses the tokens that a model would generate, and mixes them into what it reads."""

    truth: float  # the share of true tokens
    feed: str  # sample or greedy

    @torch.no_grad()
    def choose(self, network: Network, features_ND: Tensor) -> Tensor:
        """Choose one token after each feature."""
        head = cast(Head, network.head)
        parts = torch.split(features_ND, _ROWS)
        return torch.cat([self.pick(head.log_probs(part_ND)) for part_ND in parts])

    def mix(self, true_N: Tensor, own_N: Tensor) -> Tensor:
        """Keep the true token with probability ``truth``, and always where a document begins (START)."""
        return torch.where(self.is_true(true_N) | (true_N == START), true_N, own_N)

    def is_true(self, true_N: Tensor) -> Tensor:
        """Draw which true tokens are kept."""
        return torch.rand(true_N.shape, device=true_N.device) < self.truth

    def pick(self, logp_NV: Tensor) -> Tensor:
        """Choose one token from each distribution."""
        if self.feed == "greedy":
            return logp_NV.argmax(dim=-1)
        return torch.multinomial(logp_NV.float().exp(), 1)[:, 0]

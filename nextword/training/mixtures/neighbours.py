"""The neighbours of held-out tokens: found once, then scored with any temperature and any k.

The search is nearly all of the cost of a kNN-LM; what is tuned comes after it [Khandelwal et al. 2020].
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from nextword.core.events import Event, Progress, Stage
from nextword.mixtures.neighbours import Neighbours, NeighboursSettings
from nextword.training.mixtures.features import Floats, Read

_PIECE = 256  # tokens whose neighbours are searched at once


@dataclass(frozen=True)
class Found:
    """For each token, the distances of its neighbours, nearest first, and which of them predict it."""

    distance_TK: Floats
    same_TK: npt.NDArray[np.bool_]

    @property
    def spread(self) -> float:
        """Return how much farther the last neighbour is than the first, on average: a temperature scale."""
        return max(1e-9, float((self.distance_TK[:, -1] - self.distance_TK[:, 0]).mean()))

    def logp(self, settings: NeighboursSettings) -> Floats:
        """Return log p of each token with these settings."""
        distance_TK = self.distance_TK[:, : settings.k]
        weight_TK = np.exp(-(distance_TK - distance_TK[:, :1]) / settings.temperature)
        p_T = (weight_TK * self.same_TK[:, : settings.k]).sum(axis=1) / weight_TK.sum(axis=1)
        with np.errstate(divide="ignore"):
            found: Floats = np.log(p_T)
        return found


def find_neighbours(memory: Neighbours, read: Read, tokens: int) -> Generator[Event, None, Found]:
    """Find the neighbours of the first tokens of a text."""
    yield Stage("find the neighbours", tokens, "tokens")
    distances, same = [], []
    for at in range(0, tokens, _PIECE):
        now = slice(at, min(at + _PIECE, tokens))
        queries_QD = torch.from_numpy(np.array(read.keys_TD[now]))
        distance_QK, at_QK = memory.search.find(queries_QD, memory.k)
        distances.append(distance_QK.double().numpy())
        same.append(np.asarray(memory.words_M[at_QK.numpy()]) == read.words_T[now, None])
        yield Progress(now.stop)
    return Found(np.concatenate(distances), np.concatenate(same))

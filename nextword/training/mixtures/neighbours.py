"""The neighbours of held-out words: sought once, then weighed with any temperature and any number of them.

The search is all of the cost of a kNN-LM; what is tuned comes after it [Khandelwal et al. 2020].
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

_PIECE = 256  # words whose neighbours are sought at once


@dataclass(frozen=True)
class Found:
    """For each word, the distances of its neighbours, the nearest first, and which of them it follows."""

    distance_TK: Floats
    same_TK: npt.NDArray[np.bool_]

    @property
    def spread(self) -> float:
        """How much farther the last neighbour is than the first, on average: a scale for the temperature."""
        return max(1e-9, float((self.distance_TK[:, -1] - self.distance_TK[:, 0]).mean()))

    def logp(self, settings: NeighboursSettings) -> Floats:
        """log p of each word with these settings."""
        distance_TK = self.distance_TK[:, : settings.k]
        weight_TK = np.exp(-(distance_TK - distance_TK[:, :1]) / settings.temperature)
        p_T = (weight_TK * self.same_TK[:, : settings.k]).sum(axis=1) / weight_TK.sum(axis=1)
        with np.errstate(divide="ignore"):
            found: Floats = np.log(p_T)
        return found


def find_neighbours(memory: Neighbours, read: Read, words: int) -> Generator[Event, None, Found]:
    """The neighbours of the first words of a text."""
    yield Stage("seek the neighbours", words, "words")
    distances, same = [], []
    for at in range(0, words, _PIECE):
        now = slice(at, min(at + _PIECE, words))
        queries_QD = torch.from_numpy(np.array(read.keys_TD[now]))
        distance_QK, at_QK = memory.search.find(queries_QD, memory.k)
        distances.append(distance_QK.double().numpy())
        same.append(np.asarray(memory.words_M[at_QK.numpy()]) == read.words_T[now, None])
        yield Progress(now.stop)
    return Found(np.concatenate(distances), np.concatenate(same))

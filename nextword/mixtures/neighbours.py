"""Nearest neighbours as a language model: what followed in the most similar places of a stored text.

The kNN-LM of Khandelwal et al. 2020, "Generalization through memorization":

    p_kNN(w) ∝ Σ_{(k_i, v_i) among the k nearest} 1[w = v_i] exp(-|k_i - h_t|² / τ)

with k_i the network's feature before the token v_i of the stored text. Retrieval at the distribution, where
[MAUSAM "Retrieval"] retrieves whole sentences (Guu et al. 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from nextword.core.contracts import Tokenizer
from nextword.core.errors import DamagedError
from nextword.core.settings import Settings
from nextword.mixtures.memory import Witness
from nextword.mixtures.nearest import ExactSearch, Search, open_index
from nextword.store.reading import RunFolder

KEYS, WORDS, INDEX = "keys.npy", "words.npy", "index.usearch"
SHOWN = 8  # tokens before a neighbour that are shown


class NeighboursSettings(Settings):
    """How many neighbours, how sharply they are weighted, and how they are found."""

    k: int = Field(64, ge=1, le=4096, description="neighbours that are used, k")
    temperature: float = Field(10.0, gt=0, description="τ: distances are divided by it")
    search: Literal["exact", "approximate"] = Field(
        "exact", description="exact: compare every key; approximate: by an index (extra 'memory')"
    )
    words: int = Field(0, ge=0, description="tokens of the text that are stored, from its beginning; 0: all")
    numbers: Literal["float16", "float32"] = Field("float16", description="type of the stored features")


class Neighbours:
    """A `mixtures.memory.Memory` of a stored text.

    It needs only features, so its state is just the number of rows.
    """

    name = "neighbours"

    def __init__(self, settings: NeighboursSettings, words_M: Any, search: Search) -> None:
        self.k, self.temperature = settings.k, settings.temperature
        self.words_M, self.search = words_M, search

    def start(self, batch: int) -> int:
        """Return a state without memory of the text that is read."""
        return batch

    def next(self, feature_BD: Tensor, state: int, vocab_size: int) -> tuple[Tensor, Tensor]:
        """Sum the weights of the neighbours for each token."""
        weight_BK, words_BK = self._weighed(feature_BD)
        p_BV = torch.zeros(len(feature_BD), vocab_size).scatter_add_(1, words_BK, weight_BK)
        device = feature_BD.device
        return p_BV.log().to(device), torch.ones(len(feature_BD), dtype=torch.bool, device=device)

    def score(
        self, before_BTD: Tensor, ids_BT: Tensor, lengths_B: Tensor, state: int
    ) -> tuple[Tensor, Tensor, int]:
        """Search once for all real tokens."""
        real_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device) < lengths_B[:, None]
        weight_NK, words_NK = self._weighed(before_BTD[real_BT])
        logp_BT = torch.zeros(*ids_BT.shape, device=ids_BT.device)
        p_N = torch.where(words_NK == ids_BT[real_BT].cpu()[:, None], weight_NK, 0.0).sum(dim=1)
        logp_BT[real_BT] = p_N.log().to(ids_BT.device)
        return logp_BT, torch.ones_like(real_BT), state

    def read(self, before_BTD: Tensor, ids_BT: Tensor, lengths_B: Tensor, state: int) -> int:
        """Remember nothing."""
        return state

    def reorder(self, state: int, rows_B: Tensor) -> int:
        """Return the number of rows."""
        return len(rows_B)

    def rows(self, state: int) -> int:
        """Return how many rows a state has."""
        return state

    def join(self, states: Sequence[int]) -> int:
        """Return the number of all rows together."""
        return sum(states)

    def explain(
        self, feature_BD: Tensor, state: int, word: int, top: int
    ) -> tuple[float, tuple[Witness, ...]] | None:
        """Return the neighbours that were followed by the token, with the tokens before them."""
        distance_1K, at_1K = self.search.find(feature_BD[:1].cpu(), self.k)
        weight_K = torch.softmax(-distance_1K[0] / self.temperature, dim=0).tolist()
        found = []
        for weight, at in zip(weight_K, at_1K[0].tolist(), strict=True):
            if int(self.words_M[at]) == word:
                context = tuple(int(each) for each in self.words_M[max(0, at - SHOWN) : at])
                found.append(Witness(word, weight, place=at, context=context))
        return sum(witness.weight for witness in found), tuple(found[:top])

    def _weighed(self, features_ND: Tensor) -> tuple[Tensor, Tensor]:
        """Compute exp(-distance / τ) of the nearest, normalized, and return the tokens that follow them."""
        distance_NK, at_NK = self.search.find(features_ND.cpu(), self.k)
        words_NK = torch.from_numpy(np.asarray(self.words_M[at_NK.numpy()], np.int64))
        return torch.softmax(-distance_NK / self.temperature, dim=1), words_NK


class NeighboursKind:
    """Neighbours as loading sees them."""

    name = "neighbours"
    Settings = NeighboursSettings
    reads_features = True

    def load(self, folder: RunFolder, settings: NeighboursSettings, tokenizer: Tokenizer) -> Neighbours:
        """Map keys and tokens, and check that they fit together."""
        keys_MD, words_M = mapped(folder.file(KEYS), 2), mapped(folder.file(WORDS), 1)
        if len(keys_MD) != len(words_M) or not len(words_M) or keys_MD.dtype != np.dtype(settings.numbers):
            raise DamagedError(
                f"'{folder.path}' has {len(keys_MD):,} keys of {keys_MD.dtype} and {len(words_M):,} tokens, "
                "which do not fit together; make the mixture again"
            )
        if int(words_M.min()) < 0 or int(words_M.max()) >= tokenizer.vocab_size:
            raise DamagedError(f"{folder.path / WORDS} has token ids out of range; make the mixture again")
        exact = settings.search == "exact"
        search = ExactSearch(keys_MD) if exact else open_index(keys_MD, folder.file(INDEX))
        return Neighbours(settings, words_M, search)

    def describe(self, settings: NeighboursSettings) -> str:
        """Describe the neighbours in one phrase."""
        how = "" if settings.search == "exact" else ", found approximately"
        return f"the {settings.k} nearest neighbours in a stored text, τ = {settings.temperature:.4g}{how}"


def mapped(path: Path, dimensions: int) -> Any:
    """Memory-map the array of a file, which cannot hold code."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DamagedError(f"{path} is not an array ({error}); make the mixture again") from error
    if array.ndim != dimensions:
        raise DamagedError(f"{path} has {array.ndim} dimensions, not {dimensions}; make the mixture again")
    return array


NEIGHBOURS = NeighboursKind()
"""Tokens that followed similar features in the training text (kNN-LM, Khandelwal et al. 2020)."""

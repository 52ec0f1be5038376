"""The masked language model: every token sees the whole text, and blanks in it are predicted.

BERT (Devlin et al. 2019) [MAUSAM "Encoders"]. It gives no probability to a text from left to right: a text is
scored by its pseudo-likelihood Σ log p(w_t | all others) (Salazar et al. 2020), which is not a probability.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor

from nextword.blocks.cost import Cost
from nextword.blocks.states import State
from nextword.core.contracts import Array
from nextword.data.batches.corrupted import MaskedBatches, MaskSettings
from nextword.data.batches.windows import Windows
from nextword.models.build import shape_of
from nextword.models.network import Head, NeuralState
from nextword.models.transformer import TransformerNetwork

_POSITIONS = 8192  # tokens that are read at once


class MaskedNetwork(TransformerNetwork):
    """Predicts the tokens of blanks from both sides; the blank is a vector behind those of the tokens."""

    rows: ClassVar[type[Any] | None] = MaskedBatches
    options: ClassVar[type[Any]] = MaskSettings
    predicts: ClassVar[str] = "masked token"

    def __init__(self, settings: Any, vocab_size: int, closed: bool) -> None:
        shape = replace(shape_of(settings), causal=False)
        super().__init__(settings, vocab_size, closed, shape, marks=1)

    @classmethod
    def cost(cls, settings: Any, vocab_size: int) -> Cost | None:
        """Return no formula: the blank has a vector, and no place in the output layer."""
        return None

    @classmethod
    def batches(
        cls, ids: Any, documents: Any, batch: int, length: int, seed: int, vocab_size: int, settings: Any
    ) -> Any:
        """Return rows with blanks."""
        return MaskedBatches(Windows(ids, (), True, batch, length, seed), vocab_size, settings.masks)

    def read_rows(self, inputs_BT: Tensor, lengths_B: Tensor, ahead_B: Tensor | None = None) -> Tensor:
        """Return the features of rows, each read as a whole."""
        lengths = lengths_B.tolist()
        return self._pass(inputs_BT, self.start(len(lengths)), [0] * len(lengths), lengths)[0]

    def model(self) -> MaskedModel:
        """Return what fills blanks."""
        return MaskedModel(self)


class MaskedModel:
    """Fills blanks; it is not a `LanguageModel`, for it cannot read from left to right."""

    is_probability = False
    fills = "fills blanks of one token from both sides (model.objective is masked)"

    def __init__(self, network: MaskedNetwork) -> None:
        self.network = network.eval()
        self.vocab_size, self.blank = network.vocab_size, network.vocab_size

    @property
    def context(self) -> int:
        """Return how many tokens are seen at once."""
        return self.network.window

    @property
    def parameters(self) -> int:
        """Return the number of learned weights; tied ones count once."""
        return sum(weight.numel() for weight in self.network.parameters())

    @torch.inference_mode()
    def fill(self, ids_BT: Array, lengths_B: Array, chosen_BT: Array) -> Tensor:
        """Return ``logp_NV`` of the tokens at the chosen places, row by row; rows within the context."""
        ids_BT, lengths_B = self._tensor(ids_BT), self._tensor(lengths_B)
        chosen_BT = self._tensor(chosen_BT).bool()
        rows, found = max(1, _POSITIONS // max(1, ids_BT.shape[1])), []
        for at in range(0, len(ids_BT), rows):
            part = slice(at, at + rows)
            features_BTD = self.network.read_rows(ids_BT[part], lengths_B[part])
            found.append(cast(Head, self.network.head).log_probs(features_BTD[chosen_BT[part]]))
        return torch.cat(found)

    @torch.inference_mode()
    def read(self, ids_BT: Array, lengths_B: Array, state: State = None) -> tuple[Tensor, NeuralState]:
        """Return ``before_BTD``, the vector of the token before each, as a `Reader` does.

        A text that is longer than the context is read in pieces, each on its own.
        """
        ids_BT, lengths_B = self._tensor(ids_BT), self._tensor(lengths_B)
        parts = []
        for at in range(0, ids_BT.shape[1], self.context):
            piece_BT = ids_BT[:, at : at + self.context]
            real_B = (lengths_B - at).clamp(0, piece_BT.shape[1])
            parts.append(self.network.read_rows(piece_BT, real_B))
        first_B1D = self.network.start_feature(len(ids_BT))[:, None]
        features_BTD = torch.cat([first_B1D, *parts], dim=1)
        last_BD = features_BTD[torch.arange(len(ids_BT)), lengths_B]
        return features_BTD[:, :-1], NeuralState(None, last_BD)

    def _tensor(self, array: Array) -> Tensor:
        given = array if isinstance(array, Tensor) else torch.as_tensor(np.asarray(array))
        return given.to(self.network.device, torch.int64)


def around(at: int, length: int, window: int) -> tuple[int, int]:
    """Return where the window around a place of a text begins and ends: the place in its middle if it can."""
    first = max(0, min(at - window // 2, length - window))
    return first, min(length, first + window)

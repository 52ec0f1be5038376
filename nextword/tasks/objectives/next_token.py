"""A piece of a batch, read and compared with the words that came: what every engine of training runs.

ŷ(t) from h(t), then J = -Σ log ŷ(t)[w(t+1)] [IITD-1 "Training a RNN Language Model"].
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nextword.blocks.states import State, detach
from nextword.models import precision
from nextword.models.network import Network
from nextword.tasks.objectives.bptt import is_recurrent
from nextword.tasks.objectives.cross_entropy import next_word_loss
from nextword.tasks.objectives.reading import Reader, Resets


@dataclass(frozen=True)
class Lesson:
    """How a piece is read and compared; the network is handed in, so that an engine may have wrapped it."""

    reader: Reader
    smoothing: float
    dtype: torch.dtype  # of products
    counts: bool = True  # False: it is read by a rank without rows, for company; no first state is learned

    def __call__(
        self, network: Network, inputs_BT: Tensor, targets_BT: Tensor, resets_BT: Resets, before: State
    ) -> tuple[Tensor, State]:
        """The sum of -log p of the targets, and the state after the piece, through which no gradient flows.

        ``before``: None where nothing was read.
        """
        state = network.start(len(inputs_BT)) if before is None else before
        state = state if self.counts or not is_recurrent(network) else detach(state)
        with precision.products_in(self.dtype, inputs_BT.device)():
            features_BTD, after = self.reader.read(network, inputs_BT, resets_BT, state)
            loss = next_word_loss(network, features_BTD, targets_BT, self.smoothing)
        return loss, detach(after) if is_recurrent(network) else None

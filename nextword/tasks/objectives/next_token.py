"""The loss of a language model: J(θ) = -(1/T) Σ log p(w_t | before), the cross-entropy of the next token.

ŷ(t) from h(t), then J = -Σ log ŷ(t)[w(t+1)] [IITD-1 "Training a RNN Language Model", XMU "Maximum
likelihood"]. The sum over a batch is divided by all tokens of an update, so that several small batches give
the gradient of one large batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from nextword.blocks import losses
from nextword.blocks.heads import square_normalizers
from nextword.blocks.states import State, detach
from nextword.core.task import Loss
from nextword.data.batches.batch import NOT_COUNTED, Batch
from nextword.models import precision
from nextword.models.network import Head, Network, is_recurrent
from nextword.models.training import Bptt, NeuralTrainSettings
from nextword.tasks.objectives.bptt import chunks
from nextword.tasks.objectives.reading import OwnTokens, Reader, make_reader, truth_share


@dataclass(frozen=True)
class NextToken:
    """The objective of a language model, with its training settings."""

    settings: NeuralTrainSettings
    carries: bool = False  # the batches are columns: the state is carried from one to the next

    def at(self, network: Network, progress: float, counts: bool = True) -> NextTokenLoss:
        """Return the loss at this point of training: scheduled sampling depends on it."""
        forcing = self.settings.reads
        own = OwnTokens(truth_share(forcing, progress), self.settings.feed)
        reader = make_reader(network, self.settings.through_time, forcing, own)
        dtype = precision.dtype_of(self.settings.precision)
        through, smoothing = self.settings.through_time, self.settings.smoothing
        return NextTokenLoss(reader, through, smoothing, dtype, counts, self.settings.z_loss)


@dataclass(frozen=True)
class NextTokenLoss:
    """How a batch is read and compared; the network is passed in, since DDP and FSDP wrap it."""

    reader: Reader
    bptt: Bptt
    smoothing: float
    dtype: torch.dtype  # of products
    counts: bool = True  # False: on a rank without rows, so that no initial state is learned
    z_loss: float = 0.0

    def pieces(self, batch: Batch) -> list[Batch]:
        """Cut a batch where truncated backpropagation stops the gradient."""
        if self.bptt.chunk is None:
            return [batch]
        return [batch.piece(part) for part in chunks(batch.inputs_BT.shape[1], self.bptt)]

    def __call__(self, network: Network, piece: Batch, before: State) -> tuple[Loss, State]:
        """Return Σ -log p of the targets, and the state after the piece, without gradient."""
        inputs_BT = torch.from_numpy(piece.inputs_BT).to(network.device)
        targets_BT = torch.from_numpy(piece.targets_BT).to(network.device)
        state = network.start(len(inputs_BT)) if before is None else before
        state = state if self.counts or not is_recurrent(network) else detach(state)
        with precision.products_in(self.dtype, inputs_BT.device)(), losses.collecting() as found:
            features_BTD, after = self.reader.read(network, inputs_BT, piece.resets_BT, state)
            loss = cross_entropy(network, features_BTD, targets_BT, self.smoothing, self.z_loss)
            network.foresee(features_BTD, targets_BT, piece.resets_BT)
        total, parts = losses.joined(loss, found, piece.tokens)
        return Loss(total, parts), detach(after) if is_recurrent(network) else None


def cross_entropy(
    network: Network, features_BTD: Tensor, targets_BT: Tensor, smoothing: float, z_loss: float = 0.0
) -> Tensor:
    """Return Σ -log p(target) over the targets that count, with label smoothing if asked.

    ``z_loss``: the weight of a loss that is added beside it.
    """
    head = cast(Head, network.head)
    counted_BT = targets_BT != NOT_COUNTED
    if bool(counted_BT.all()):
        features_ND, targets_N = features_BTD.flatten(0, 1), targets_BT.flatten()
    else:
        features_ND, targets_N = features_BTD[counted_BT], targets_BT[counted_BT]
    losses.add("z", z_loss, lambda: square_normalizers(network.head, features_ND) / max(1, len(targets_N)))
    return head.loss(features_ND, targets_N, smoothing)

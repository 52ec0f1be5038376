"""What is made small: J(θ) = -(1/T) Σ log p(w_t | before), the cross-entropy of the next word.

[IITD-1 "Training a RNN Language Model", XMU "Maximum likelihood"]. The sum over a batch is divided by all the
words of an update, so that several small batches give the gradient of one large batch.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor

from nextword.data.batches.batch import NOT_COUNTED
from nextword.models.network import Head, Network


def next_word_loss(network: Network, features_BTD: Tensor, targets_BT: Tensor, smoothing: float) -> Tensor:
    """Σ -log p(target) over the targets that count, with label smoothing if asked."""
    head = cast(Head, network.head)
    counted_BT = targets_BT != NOT_COUNTED
    if bool(counted_BT.all()):
        return head.loss(features_BTD.flatten(0, 1), targets_BT.flatten(), smoothing)
    return head.loss(features_BTD[counted_BT], targets_BT[counted_BT], smoothing)

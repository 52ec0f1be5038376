"""DDP: every rank holds all weights, and gradients are summed while the backward pass still runs.

torch's `DistributedDataParallel` around the loss [Li et al. 2020]. Weights that a rank did not use (a rare
cluster of an adaptive softmax) are looked for at each pass. That also keeps torch from rebuilding its buckets
after the first step, so that a resumed run adds gradients in the same order as one that never stopped.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nextword.blocks.states import State
from nextword.core.task import BatchLoss, Loss
from nextword.models.network import Network
from nextword.training.ranks import Engine, Ranks


class WithLoss(nn.Module):
    """A network whose forward pass is the loss of a batch: what DDP and FSDP wrap."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, of: BatchLoss, piece: Any, before: State) -> tuple[Tensor, dict[str, Tensor], State]:
        """Return the loss of a piece, its parts, and the state after it, as plain tensors for torch."""
        loss, after = of(self.network, piece, before)
        return loss.total, dict(loss.parts), after


class DDPEngine(Engine):
    """DDP: each process has all weights."""

    name = "ddp"

    def __init__(self, network: Network, ranks: Ranks) -> None:
        super().__init__(ranks)
        warnings.filterwarnings("ignore", "find_unused_parameters=True was specified")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            self._wrapped = DistributedDataParallel(
                WithLoss(network), find_unused_parameters=True, broadcast_buffers=False
            )

    def loss(self, network: Any, of: BatchLoss, piece: Any, before: State) -> tuple[Loss, State]:
        """Return the loss of a piece, computed through DDP."""
        total, parts, after = self._wrapped(of, piece, before)
        return Loss(total, parts), after

    def accumulating(self, is_last: bool) -> AbstractContextManager[None]:
        """Sum gradients over the ranks only after the last piece."""
        return nullcontext() if is_last else self._wrapped.no_sync()

    def divisor(self, tokens: int) -> float:
        """Undo the mean over ranks that DDP takes: the sum is wanted."""
        return max(1, tokens) / self.ranks.world

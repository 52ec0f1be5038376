"""DDP: every rank holds all weights, and gradients are summed while the backward pass still runs.

torch's `DistributedDataParallel` around the lesson [Li et al. 2020]. Weights that a rank did not use (a rare
cluster of an adaptive softmax) are looked for at each pass: that also keeps torch from laying out its buckets
anew after the first step, so that a resumed training adds in the same order as one that never stopped.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from nextword.blocks.states import State
from nextword.models.network import Network
from nextword.tasks.objectives.next_token import Lesson
from nextword.training.distributed.engines import Engine
from nextword.training.distributed.ranks import Ranks


class Taught(nn.Module):
    """A network whose forward pass is a lesson: what DDP and FSDP wrap."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, lesson: Lesson, *piece: Any) -> tuple[Tensor, State]:
        """Loss and state of a piece."""
        return lesson(self.network, *piece)


class Replicated(Engine):
    """Several processes with all weights each."""

    name = "ddp"

    def __init__(self, network: Network, ranks: Ranks) -> None:
        super().__init__(ranks)
        warnings.filterwarnings("ignore", "find_unused_parameters=True was specified")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            self._wrapped = DistributedDataParallel(
                Taught(network), find_unused_parameters=True, broadcast_buffers=False
            )

    def read(self, network: Network, lesson: Lesson, *piece: Any) -> tuple[Tensor, State]:
        """As one process, through DDP."""
        loss, after = self._wrapped(lesson, *piece)
        return loss, after

    def adding(self, is_last: bool) -> AbstractContextManager[None]:
        """Gradients are summed over the ranks after the last piece."""
        return nullcontext() if is_last else self._wrapped.no_sync()

    def divisor(self, tokens: int) -> float:
        """DDP takes the mean over the ranks, and we want the sum."""
        return max(1, tokens) / self.ranks.world

"""How gradients become those of the whole batch: one process has them, several put them together.

One process alone does nothing here. Several use what torch has: DDP, where every process holds all weights
(`ddp`), and FSDP2, where each holds a part of every weight (`fsdp`). Both compute the same loss, and that of
a rank is divided by the tokens of the whole batch, so that the sum of the gradients is that of the batch.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from nextword.blocks.states import State
from nextword.core.task import BatchLoss, Loss
from nextword.models.network import Network
from nextword.training.distributed.ranks import Ranks


class Engine:
    """One process: the network as it is."""

    name = ""

    def __init__(self, ranks: Ranks | None = None) -> None:
        self.ranks = Ranks() if ranks is None else ranks

    def loss(self, network: Any, of: BatchLoss, piece: Any, before: State) -> tuple[Loss, State]:
        """Return the loss of a piece of a batch, and the state after it."""
        return of(network, piece, before)

    def adding(self, is_last: bool) -> AbstractContextManager[None]:
        """Around a piece: only after the last one of an update are gradients exchanged."""
        return nullcontext()

    def divisor(self, tokens: int) -> float:
        """Return what the loss of a piece is divided by, so that all ranks have the mean over tokens."""
        return max(1, tokens)

    def norm(self, network: Network, own: float) -> float:
        """The norm of the whole gradient, from that of the gradients this rank holds."""
        return own

    def is_divided(self, name: str, dimensions: int) -> bool:
        """Whether a rank holds only its rows of this tensor of the training state."""
        return self.ranks.has_met and name.startswith("carried.")

    def rows(self, name: str, total: int) -> slice:
        """Which rows of a divided tensor this rank holds."""
        return self.ranks.part(total)

    def whole(self, network: Network) -> Network:
        """The network with all its weights, to be used as ever, whatever other ranks do meanwhile."""
        return network

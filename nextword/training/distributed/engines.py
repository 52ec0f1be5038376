"""How gradients become those of the whole batch: one process has them, several put them together.

One process alone does nothing here. Several use what torch has: DDP, where every process holds all weights
(`replicated`), and FSDP2, where each holds a part of every weight (`divided`). Both take the same lesson, and
the loss of a rank is divided by the words of the whole batch, so that their sum is its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor

from nextword.blocks.states import State
from nextword.models.network import Network
from nextword.models.training import NeuralTrainSettings
from nextword.tasks.objectives.next_token import Lesson
from nextword.training.distributed.ranks import Ranks


class Engine:
    """One process: the network as it is."""

    name = ""

    def __init__(self, ranks: Ranks | None = None) -> None:
        self.ranks = Ranks() if ranks is None else ranks

    def read(self, network: Network, lesson: Lesson, *piece: Any) -> tuple[Tensor, State]:
        """The loss of a piece (inputs, targets, resets, the state before), and the state after it."""
        return lesson(network, *piece)

    def adding(self, is_last: bool) -> AbstractContextManager[None]:
        """Around a piece: only after the last one of an update are gradients exchanged."""
        return nullcontext()

    def divisor(self, tokens: int) -> float:
        """What the loss of a piece is divided by, so that all ranks together have the mean over the words."""
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


def make_engine(
    network: Network, settings: NeuralTrainSettings, ranks: Ranks, build: Callable[[], Network] | None = None
) -> Engine:
    """The engine of these ranks; with FSDP the weights of the network are divided from now on.

    ``build`` makes the network once more.
    """
    if not ranks.has_met:
        return Engine(ranks)
    if settings.parallel == "fsdp":
        from nextword.training.distributed.fsdp import Divided

        assert build is not None, "a job for several ranks knows how its network is built"
        return Divided(network, settings, ranks, build)
    from nextword.training.distributed.ddp import Replicated

    return Replicated(network, ranks)

"""Choose how processes train together: DDP (each has all weights) or FSDP2 (each has a part of them)."""

from __future__ import annotations

from collections.abc import Callable

from nextword.models.network import Network
from nextword.models.training import NeuralTrainSettings
from nextword.training.ranks import Engine, Ranks


def make_engine(
    network: Network, settings: NeuralTrainSettings, ranks: Ranks, build: Callable[[], Network] | None = None
) -> Engine:
    """Make the engine of these ranks; with FSDP the weights of the network are sharded from now on.

    ``build`` builds the network again.
    """
    if settings.parallel == "fsdp":
        from nextword.training.distributed.fsdp import FSDPEngine

        assert build is not None, "a job for several ranks knows how its network is built"
        return FSDPEngine(network, settings, ranks, build)
    from nextword.training.distributed.ddp import DDPEngine

    return DDPEngine(network, ranks)

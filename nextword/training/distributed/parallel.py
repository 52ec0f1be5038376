"""Choose how processes train together: alone, with all weights each (DDP), or with a part of each (FSDP2)."""

from __future__ import annotations

from collections.abc import Callable

from nextword.models.network import Network
from nextword.models.training import NeuralTrainSettings
from nextword.training.distributed.ranks import Engine, Ranks


def make_engine(
    network: Network, settings: NeuralTrainSettings, ranks: Ranks, build: Callable[[], Network] | None = None
) -> Engine:
    """Return the engine of these ranks; with FSDP the weights of the network are divided from now on.

    ``build`` makes the network once more.
    """
    if settings.parallel == "fsdp":
        from nextword.training.distributed.fsdp import Divided

        assert build is not None, "a job for several ranks knows how its network is built"
        return Divided(network, settings, ranks, build)
    from nextword.training.distributed.ddp import Replicated

    return Replicated(network, ranks)

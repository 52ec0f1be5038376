"""Under which conditions a training runs: its time, its device, who may stop it, what it starts from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nextword.core.task import Preparation
from nextword.system.signals import Stop
from nextword.training.budget.clock import Clock
from nextword.training.distributed.ranks import Ranks

if TYPE_CHECKING:
    from nextword.runs.saved import Trained
    from nextword.training.checkpointing import Keeper


@dataclass(frozen=True)
class Conditions:
    """What is no setting of the model, and so not part of its configuration."""

    clock: Clock = field(default_factory=Clock)
    stop: Stop = field(default_factory=Stop)
    device: str = "cpu"  # auto, cpu, cuda, mps
    start: Trained | None = None  # the run whose weights it begins with
    whole: bool = False  # read all examples, whatever the time
    keeper: Keeper | None = None  # writes checkpoints, and goes on from one
    ranks: Ranks = field(default_factory=Ranks)  # the processes that train together

    def preparation(self, scratch: Path | None = None) -> Preparation:
        """Return how examples are prepared: a resumed training reads as much as it did at first."""
        if self.keeper is None:
            return Preparation(scratch, None, self.clock.seconds, self.whole)
        return Preparation(scratch, self.keeper.vocabulary(), self.keeper.reading.seconds, self.whole)

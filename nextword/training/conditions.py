"""Under which conditions a training runs: its time, its device, who may stop it, what it starts from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
    whole: bool = False  # the text is ready to be read as it is: nothing of it is left out for want of time
    keeper: Keeper | None = None  # writes checkpoints, and goes on from one
    ranks: Ranks = field(default_factory=Ranks)  # the processes that train together

    @property
    def reading(self) -> Clock:
        """The clock that decides how much of the text is read."""
        return self.clock if self.keeper is None else self.keeper.reading

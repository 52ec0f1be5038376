"""Our own training as the command line program runs it, one step at a time.

The same path as `nextword train`: text, tokenizer, ids, network, loop; every step yields its loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from nextword.api import train
from nextword.core.events import Measure
from nextword.models import precision
from peers.task import Task


class Peer:
    """Pulls at the events of a training."""

    def __init__(self, task: Task) -> None:
        family, *sets = task.options
        sets += [f"train.steps={task.steps}", "train.log_every=1", "data.hold_out=0"]
        sets += [f"train.batch={task.batch}", f"train.length={task.length}", f"model.layers={task.layers}"]
        sets += [f"model.hidden={task.width}", f"model.dropout={task.dropout}", f"train.rate={task.rate}"]
        order = train.Order(data=(task.text,), model=family, seed=task.seed, sets=tuple(sets))
        self.type = "fp32"
        self._note_type()
        self.losses = self._losses(order)
        next(self.losses)  # reading and numbering the text is not training

    def _note_type(self) -> None:
        """Remember which type of products the trainer chooses."""
        choose = precision.choose

        def noting(*args: object) -> str:
            self.type = choose(*args)
            return self.type

        precision.choose = noting

    def _losses(self, order: train.Order) -> Iterator[float]:
        for event in train.run(order, keep=False):
            if isinstance(event, Measure) and "loss" in event.values:
                yield event.values["loss"]

    def step(self) -> float:
        """One update."""
        return next(self.losses)

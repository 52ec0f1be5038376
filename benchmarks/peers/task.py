"""One piece of training work, the same for everybody: text as ids, the sizes of the model, the batch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np


@dataclass
class Task:
    """What is trained; a peer takes from it what it knows."""

    train: str  # a .npy file of ids
    vocab: int
    kind: str = "lstm"  # lstm or gpt
    layers: int = 2
    width: int = 200
    heads: int = 4
    batch: int = 20
    length: int = 35
    dropout: float = 0.2
    rate: float = 20.0
    steps: int = 2000  # of the schedule, where the peer has one
    seed: int = 1
    options: list[str] = field(default_factory=list)  # settings of ours only, as after --set
    text: str = ""  # the text itself, for ours

    def to_json(self) -> str:
        """For the command line of a process of its own."""
        return json.dumps(asdict(self))

    @property
    def tokens(self) -> int:
        """Words that one step learns from."""
        return self.batch * self.length

    @property
    def matrix_weights(self) -> int:
        """Weights that are multiplied once for every word; an embedding is looked up."""
        if self.kind == "lstm":
            return self.layers * 8 * self.width**2 + self.width * self.vocab
        return self.layers * 12 * self.width**2 + self.width * self.vocab

    @property
    def operations(self) -> float:
        """Of one step: 2 for each weight and word, twice as many on the way back; attention on top."""
        attention = 0 if self.kind == "lstm" else 12 * self.layers * self.width * self.length / 2
        return self.tokens * (6.0 * self.matrix_weights + attention)


def read(text: str) -> Task:
    """From the command line."""
    return Task(**json.loads(text))


def ids_of(task: Task) -> np.ndarray:
    """The training text."""
    return np.load(Path(task.train))

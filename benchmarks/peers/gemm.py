"""What this machine multiplies at best: square matrices of float32."""

from __future__ import annotations

import torch

from peers.task import Task

SIZE = 2048


class Peer:
    """One product a step."""

    operations = 2.0 * SIZE**3

    def __init__(self, task: Task) -> None:
        torch.manual_seed(task.seed)
        self.a, self.b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
        self.out = torch.empty(SIZE, SIZE)

    def step(self) -> float:
        """Its time is what counts."""
        torch.mm(self.a, self.b, out=self.out)
        return 0.0

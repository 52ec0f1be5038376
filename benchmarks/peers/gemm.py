"""What this machine multiplies at best: square matrices of float32, or of bf16 if the options say so."""

from __future__ import annotations

import torch

from peers.task import Task

SIZE = 2048


class Peer:
    """One product a step."""

    operations = 2.0 * SIZE**3

    def __init__(self, task: Task) -> None:
        torch.manual_seed(task.seed)
        kind = torch.bfloat16 if "bf16" in task.options else torch.float32
        self.a, self.b = (torch.randn(SIZE, SIZE).to(kind) for _ in range(2))
        self.out = torch.empty(SIZE, SIZE, dtype=kind)

    def step(self) -> float:
        """Its time is what counts."""
        torch.mm(self.a, self.b, out=self.out)
        return 0.0

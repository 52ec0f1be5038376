"""How long a training is, in steps: known beforehand, or revised while the minutes run.

With ``--minutes`` the number of steps follows from the pace; each revision is recorded, so that the learning
rate of every step can be computed again without a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Plan:
    """``revisions``: from which step on how many steps in all were expected."""

    revisions: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, steps: int) -> Plan:
        """A plan of so many steps."""
        return cls([(0, max(1, steps))])

    @property
    def steps(self) -> int:
        """Steps expected in all."""
        return self.revisions[-1][1]

    def revise(self, step: int, steps: int) -> None:
        """After ``step`` updates: so many in all are expected now."""
        steps = max(steps, step)
        if steps != self.steps:
            if self.revisions[-1][0] == step:
                self.revisions.pop()
            self.revisions.append((step, max(1, steps)))

    def progress(self, step: int) -> float:
        """The share of the training that is over in the middle of this update (the first is 1).

        It never jumps: a revision spreads what was left then over the steps that are left now.
        """
        over, place = 0.0, 0.0
        nexts = [*(float(at) for at, _ in self.revisions[1:]), float("inf")]
        for (_, steps), until in zip(self.revisions, nexts, strict=True):
            end = min(step - 0.5, until)
            if end > place:
                over += (1 - over) * min(1.0, (end - place) / max(steps - place, 1e-9))
                place = end
        return min(1.0, over)

    def to_json(self) -> list[list[int]]:
        """Plain lists."""
        return [list(pair) for pair in self.revisions]

    @classmethod
    def from_json(cls, pairs: Sequence[Sequence[int]]) -> Plan:
        """The way back."""
        return cls([(int(at), int(steps)) for at, steps in pairs])

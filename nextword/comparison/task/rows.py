"""The results of one run of any task, kept as JSON so that it is not trained again."""

from __future__ import annotations

from dataclasses import dataclass, field

from nextword.comparison.rows import Result


@dataclass(frozen=True)
class TaskRow(Result):
    """What was measured of one run; a number that is not finite is None."""

    values: dict[str, float | None] = field(default_factory=dict)  # every measure by its name
    decides: str = ""  # which of them ranks
    higher: bool = False  # whether more of it is better
    of: str = ""  # what the blocks are means of, where that is another one
    examples: int = 0  # measured
    speed: float | None = None  # examples measured per second
    valid: float | None = None  # what decides, on the examples for choices
    predictions: list[str] = field(default_factory=list)

    @property
    def cost(self) -> float | None:
        """What decides; lower is better."""
        value = self.values.get(self.decides)
        return -value if value is not None and self.higher else value

    @property
    def tuned(self) -> float | None:
        """What decides, on the examples for choices."""
        return self.valid

    @property
    def shown(self) -> dict[str, float | None]:
        """Every measure, the one that decides first."""
        return {self.decides: self.values.get(self.decides), **self.values}

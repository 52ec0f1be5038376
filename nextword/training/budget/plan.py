"""What ``--minutes`` chose for a model, kept so that every seed of the model is trained with the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from nextword.runs.settings import RunSettings, changed


@dataclass(frozen=True)
class Plan:
    """The settings that were chosen, and what they were chosen by."""

    settings: Mapping[str, Any]  # by their dotted names
    figures: Mapping[str, Any]  # size, parameters, tokens expected, …

    @classmethod
    def made(cls, before: RunSettings, after: RunSettings, figures: Mapping[str, Any]) -> Plan:
        """Make the plan that turns some settings into others."""
        chosen = {
            f"{group}.{name}": value
            for group, each in after.groups.items()
            for name, value in each.model_dump().items()
            if value != before.groups[group].model_dump()[name]
        }
        return cls(chosen, dict(figures))

    def applied(self, settings: RunSettings) -> RunSettings:
        """Return settings with what was chosen."""
        return changed(settings, self.settings)

    def describe(self) -> str:
        """Return the size as people read it."""
        return f"{self.figures['about']}, {self.figures['parameters']:,} parameters"


@dataclass
class Plans:
    """The plans of one model: its own, or one for each part of a mixture.

    A network whose plan is here is not calibrated again; one that is calibrated adds its plan.
    """

    by_model: dict[str, Plan] = field(default_factory=dict)
    are_shared: bool = False  # by several training runs: then no run's minutes pay for them

    def find(self, settings: RunSettings) -> Plan | None:
        """Return the plan of a model, if it was made before."""
        return self.by_model.get(settings.name)

    def add(self, settings: RunSettings, plan: Plan) -> None:
        """Keep the plan of a model."""
        self.by_model[settings.name] = plan

    def to_json(self) -> dict[str, Any]:
        """Return every plan by its model."""
        return {name: asdict(plan) for name, plan in self.by_model.items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Plans:
        """Read back what `to_json` wrote, to share it."""
        return cls({name: Plan(**each) for name, each in values.items()}, are_shared=True)

    def describe(self) -> str:
        """Return the size of every network as people read it; empty where nothing was planned."""
        if len(self.by_model) == 1:
            return next(iter(self.by_model.values())).describe()
        return "; ".join(f"{name} {plan.describe()}" for name, plan in self.by_model.items())

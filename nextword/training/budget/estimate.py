"""``--estimate``: what a training run would take, by the kind of family; nothing is trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

from nextword.core import catalog
from nextword.core.display import LONG, about
from nextword.core.events import Event, Note
from nextword.core.family import CompositeFamily, Cost, CountFamily, NetworkFamily
from nextword.runs.settings import RunSettings
from nextword.training.order import Conditions


@runtime_checkable
class Measured(Protocol):
    """Examples that know how large they are; those of a task from outside may not."""

    @property
    def size(self) -> int | None:
        """Return the approximate bytes, if known."""
        ...


def estimate(settings: RunSettings, examples: Any, conditions: Conditions) -> dict[str, Any]:
    """Estimate parameters, seconds, memory and disk space."""
    family = settings.find_family()
    if isinstance(family, CompositeFamily):
        return _of_parts(settings, examples, conditions)
    if isinstance(family, NetworkFamily):
        from nextword.training.budget.forecast import forecast

        return forecast(settings, examples, conditions)
    assert isinstance(family, CountFamily)
    cost, most = _cost(settings, family, examples), settings.train.memory
    memory = min(cost.memory, most) if most else cost.memory
    return {"model": settings.name, "bytes": examples.size or 0, **asdict(cost), "memory": memory}


def _of_parts(settings: RunSettings, examples: Any, conditions: Conditions) -> dict[str, Any]:
    """Estimate a mixture: its minutes, and the parameters, memory and disk space of all parts."""
    parts = catalog.find("composition", settings.task).part_settings(settings)
    found = [estimate(part, examples, conditions) for part in parts]
    summed = {name: sum(each.get(name, 0) for each in found) for name in ("parameters", "memory", "disk")}
    size, seconds = examples.size or 0, conditions.clock.seconds
    if seconds is None:
        seconds = sum(each.get("seconds", 0.0) for each in found)
    return {"model": settings.name, "bytes": size, "seconds": seconds, **summed}


def warn_if_too_slow(minutes: float | None, settings: RunSettings, examples: Any) -> Iterator[Event]:
    """Note if a count model takes long; the minutes, if given, are an upper limit for it."""
    family = settings.find_family()
    assert isinstance(family, CountFamily)
    if not isinstance(examples, Measured):
        return
    seconds = _cost(settings, family, examples).seconds
    if minutes is None:
        if seconds > LONG:
            yield Note(f"training takes {about(seconds)}")
    elif seconds > 60 * minutes:
        yield Note(f"training will take about {seconds:,.0f} s, more than --minutes {minutes:g}")


def _cost(settings: RunSettings, family: CountFamily, examples: Any) -> Cost:
    return family.estimate(settings.model, examples.size or 0, settings.text)

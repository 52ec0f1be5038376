"""What is compared, and on which examples: settings are checked and examples divided before any training."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nextword.comparison.entries import Entry, entries
from nextword.comparison.setup import folder_of
from nextword.core.errors import ConfigError
from nextword.core.task import Division, Task


@dataclass(frozen=True)
class TaskSetup:
    """The models with their settings, the examples, and where results go."""

    task: Task
    entries: tuple[Entry, ...]
    division: Division
    out: Path
    minutes: float | None = None


def set_up(
    task: str,
    data: Sequence[str],
    models: Sequence[str] = (),
    *,
    valid: Sequence[str] = (),
    sets: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    minutes: float | None = None,
    seeds: int = 1,
) -> TaskSetup:
    """Check everything the user asked for, and divide the examples once for all models."""
    if minutes is not None and not minutes > 0:
        raise ConfigError(f"'minutes' is {minutes}; it must be more than 0")
    if not data:
        raise ConfigError(f"name the examples to compare models of the task '{task}' on")
    found = entries(models, (), seeds, dict(sets or {}), minutes, task)
    if not found:
        raise ConfigError(f"the task '{task}' has no models to compare; name some with --models")
    settings = found[0].settings
    known = settings.find_task()
    return TaskSetup(known, found, known.divide(data, valid, settings), folder_of(out, data[0]), minutes)

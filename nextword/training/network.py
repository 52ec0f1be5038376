"""Train a network: choose its size for the minutes, make it, restore a checkpoint, and run the loop."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from nextword.core.errors import RunError
from nextword.core.events import Event, Rows, kept, recorded
from nextword.core.task import Prepared
from nextword.runs.settings import RunSettings, from_toml
from nextword.system.memory import enough_memory
from nextword.training import loop
from nextword.training.conditions import Conditions
from nextword.training.fingerprint import describe
from nextword.training.job import Job, make_job


def train_network(
    settings: RunSettings,
    prepared: Prepared,
    conditions: Conditions,
    metrics: Rows,
    ready: Callable[[RunSettings], None] | None = None,
) -> Generator[Event, None, tuple[RunSettings, Any, dict[str, Any]]]:
    """Train a network: settings as chosen for the minutes, the model, and facts of its training.

    ``ready`` is called with the settings before the first step.
    """
    keeper = conditions.keeper
    if keeper is None or not keeper.goes_on:
        settings = yield from kept(_calibrated(settings, prepared, conditions), metrics)
    with enough_memory("make this model"):
        settings, job = yield from kept(make_job(settings, prepared, conditions), metrics)
    if ready is not None:
        ready(settings)
    if conditions.ranks.has_met:
        _check_same_examples(conditions, job, prepared)
    state = loop.begin(job)
    events: Iterable[Event] = loop.fit(job, state)
    if keeper is not None:
        yield from keeper.begin(job, settings, prepared, metrics)
        yield from keeper.restore(job, state)
        events = keeper.follow(events)
    with enough_memory("train this model"):
        outcome: loop.Outcome = yield from recorded(events, metrics)
    resumed = {"resumed": keeper.resumed} if keeper is not None and keeper.resumed else {}
    return settings, outcome.model, outcome.facts | resumed


def _calibrated(
    settings: RunSettings, prepared: Prepared, conditions: Conditions
) -> Generator[Event, None, RunSettings]:
    """Choose what was left open so that it fits the minutes; rank 0 decides for all."""
    from nextword.training.budget.calibrate import calibrate

    ranks = conditions.ranks
    if conditions.clock.is_limited and ranks.is_first:
        settings = yield from calibrate(settings, prepared, conditions)
    if not ranks.has_met:
        return settings
    chosen: str = ranks.told(settings.to_toml())
    return settings if ranks.is_first else from_toml(chosen, "the plan of rank 0")


def _check_same_examples(conditions: Conditions, job: Job, prepared: Prepared) -> None:
    """Check that every rank has read the same examples, each for itself."""
    about = describe(job, prepared)
    hashes = conditions.ranks.collected([about["ids"], about["held_out"]])
    for rank, found in enumerate(hashes):
        if found != hashes[0]:
            raise RunError(
                f"rank {rank} has read another text than rank 0 (SHA-256 {found[0][:12]}… and "
                f"{hashes[0][0][:12]}…); give all of them the same files"
            )

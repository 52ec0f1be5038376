"""From ids to a model: a count family's own fit, or the steps of the trainer of neural models."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from nextword.core.contracts import Encoded, LanguageModel
from nextword.core.errors import RunError
from nextword.core.events import Done, Event, Measure
from nextword.core.family import Budget
from nextword.data.encode import Text
from nextword.runs.settings import RunSettings, changed, from_toml
from nextword.system.memory import enough_memory
from nextword.training.budget.calibrate import calibrate
from nextword.training.conditions import Conditions
from nextword.training.distributed.ranks import Ranks

if TYPE_CHECKING:
    from nextword.training.loop import Job

Metrics = list[dict[str, Any]]


def learn_counts(
    settings: RunSettings, text: Text, budget: Budget, metrics: Metrics
) -> Generator[Event, None, LanguageModel]:
    """A count family's own fit."""
    model: LanguageModel = yield from _recorded(
        settings.find_family().fit(text.ids, text.tokenizer, settings.model, budget), metrics
    )
    return model


def learn_neural(
    settings: RunSettings,
    text: Text,
    held_out: Iterable[Encoded] | None,
    conditions: Conditions,
    metrics: Metrics,
    ready: Callable[[RunSettings], None] | None = None,
) -> Generator[Event, None, tuple[RunSettings, LanguageModel, dict[str, Any]]]:
    """The trainer of neural models: settings as chosen for the minutes, the model, and facts of its training.

    ``ready`` is called with the settings before the first step.
    """
    from nextword.training import loop, setup

    keeper = conditions.keeper
    if keeper is None or not keeper.goes_on:
        settings = yield from _recording(_calibrated(settings, text, conditions), metrics)
    with enough_memory("make this model"):
        job = yield from _recorded(setup.prepare(settings, text, held_out, conditions), metrics)
    settings = changed(settings, {"train.precision": job.settings.precision})
    if ready is not None:
        ready(settings)
    if conditions.ranks.has_met:
        _check_same_text(conditions.ranks, job, text)
    state = loop.begin(job)
    events: Iterable[Event] = loop.fit(job, state)
    if keeper is not None:
        yield from keeper.begin(job, settings, text, metrics)
        yield from keeper.restore(job, state)
        events = keeper.follow(events)
    with enough_memory("train this model"):
        outcome: loop.Outcome = yield from _recorded(events, metrics)
    resumed = {"resumed": keeper.resumed} if keeper is not None and keeper.resumed else {}
    return settings, outcome.model, outcome.facts | resumed


def _calibrated(
    settings: RunSettings, text: Text, conditions: Conditions
) -> Generator[Event, None, RunSettings]:
    """What rank 0 finds fitting for the time is done by all."""
    ranks = conditions.ranks
    if ranks.is_first:
        settings = yield from calibrate(settings, text, conditions)
    if not ranks.has_met:
        return settings
    chosen: str = ranks.told(settings.to_toml())
    return settings if ranks.is_first else from_toml(chosen, "the plan of rank 0")


def _check_same_text(ranks: Ranks, job: Job, text: Text) -> None:
    """Every rank has read the text for itself: it must be the same everywhere."""
    from nextword.training.fingerprint import describe

    about = describe(job, text)
    hashes = ranks.collected([about["ids"], about["held_out"]])
    for rank, found in enumerate(hashes):
        if found != hashes[0]:
            raise RunError(
                f"rank {rank} has read another text than rank 0 (SHA-256 {found[0][:12]}… and "
                f"{hashes[0][0][:12]}…); give all of them the same files"
            )


def _recorded(events: Iterable[Event], metrics: Metrics) -> Generator[Event, None, Any]:
    """Hand on all but the last event; numbers are kept, and the result is returned."""
    made: Any = None
    for event in events:
        if isinstance(event, Done):
            made = event.result
            continue
        if isinstance(event, Measure):
            metrics.append(event.values)
        yield event
    assert made is not None, "the last event is Done(something)"
    return made


def _recording(
    events: Generator[Event, None, RunSettings], metrics: Metrics
) -> Generator[Event, None, RunSettings]:
    """Hand on all events; numbers are kept."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            chosen: RunSettings = end.value
            return chosen
        if isinstance(event, Measure):
            metrics.append(event.values)
        yield event

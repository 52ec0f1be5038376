"""From ids to a model: a count family's own fit, or the steps of the trainer of neural models."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from nextword.core.contracts import Encoded, LanguageModel
from nextword.core.events import Done, Event, Measure
from nextword.core.family import Budget
from nextword.train.calibrate import calibrate
from nextword.train.conditions import Conditions
from nextword.train.enough import enough_memory
from nextword.train.ids import Text
from nextword.train.settings import RunSettings

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
    from nextword.train.neural import loop, setup

    keeper = conditions.keeper
    if keeper is None or not keeper.goes_on:
        settings = yield from _recording(calibrate(settings, text, conditions), metrics)
    if ready is not None:
        ready(settings)
    with enough_memory("make this model"):
        job = yield from _recorded(setup.prepare(settings, text, held_out, conditions), metrics)
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

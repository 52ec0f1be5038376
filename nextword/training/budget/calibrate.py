"""``--minutes``: choose the settings that the user left open so that the model learns most in the time.

The task has already decided how much of the text is read and how many subwords there are. Then a few real
steps of some sizes are timed, and the largest size is chosen that can still be trained on enough tokens per
weight (`sizes.TOKENS_PER_WEIGHT`) in the time that is left. Settings that the user gave stay.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, cast

from nextword.core.events import Event, Measure, Note, Stage
from nextword.core.family import NetworkFamily, Rung
from nextword.core.task import Prepared
from nextword.runs.settings import RunSettings, with_open
from nextword.tasks import sizes
from nextword.training.budget.clock import Clock
from nextword.training.budget.trial import Trial, WeightCounts, count_weights, threads_worth_trying, try_steps
from nextword.training.order import Conditions

_SHARE = 0.08  # of the time, for trials
_MOST = 8.0  # seconds of trials
_FASTER = 0.95  # more threads are used only if a step then takes less than this share of the time


def calibrate(
    settings: RunSettings, prepared: Prepared, conditions: Conditions
) -> Generator[Event, None, RunSettings]:
    """Choose settings so that training fits the time that is left."""
    clock = conditions.clock
    if clock.seconds is None:
        return settings
    yield Stage("time a few steps")
    allowance = clock.used() + min(_MOST, _SHARE * clock.seconds)
    chosen = _choose(
        (_candidate(settings, rung, prepared) for rung in _rungs(settings)), prepared, conditions, allowance
    )
    settings = _finish(chosen, clock)
    yield from _report(chosen, settings, clock)
    return settings


@dataclass
class Candidate:
    """A size that may be chosen, and what is known about it."""

    settings: RunSettings
    rung: Rung
    weights: WeightCounts
    trial: Trial | None = None

    def tokens(self, seconds: float) -> float:
        """Return the tokens it can be trained on in this many seconds; 0 if there was no time to try."""
        return 0.0 if self.trial is None else self.trial.tokens_per_second * max(0.0, seconds)

    @property
    def epoch(self) -> int:
        """Return the tokens of one pass over the text."""
        return 1 if self.trial is None else max(1, self.trial.epoch)


def _rungs(settings: RunSettings) -> list[Rung]:
    """Return the sizes to choose from; only one if the user set a size, or the family has no ladder."""
    found = cast(NetworkFamily, settings.find_family()).ladder
    if not found or any(key in settings.named for key in found[0].settings if key.startswith("model.")):
        return [Rung("", {}, "as set")]
    return list(found)


def _candidate(settings: RunSettings, rung: Rung, prepared: Prepared) -> Candidate:
    """Make a candidate of a size, with settings that follow from the data."""
    settings = with_open(settings, rung.settings)
    settings = with_open(settings, settings.find_task().fitting(settings, prepared))
    return Candidate(settings, rung, count_weights(settings, prepared))


def _choose(
    candidates: Iterator[Candidate], prepared: Prepared, conditions: Conditions, until: float
) -> Candidate:
    """Climb from the smallest size while there is enough text to learn from and time to try."""
    clock = conditions.clock
    chosen: Candidate | None = None
    for candidate in candidates:
        left = until - clock.used()
        if chosen is not None and (left <= 0 or not _is_worth_trying(chosen, candidate, clock.left())):
            break
        candidate.settings = _with_batch_size(candidate, chosen, clock)
        if clock.left() <= 0:
            return chosen or candidate
        _try(candidate, prepared, conditions, left / 2)
        if chosen is not None and not sizes.is_enough(
            candidate.tokens(clock.left()), candidate.weights.inner
        ):
            break
        chosen = candidate
    assert chosen is not None, "a ladder has a rung"
    return chosen


def _try(candidate: Candidate, prepared: Prepared, conditions: Conditions, seconds: float) -> None:
    """Time a size with one thread, and with all threads if a probe says that is faster.

    Small products gain little from several threads, and if other programs use the processors, threads that
    wait for each other lose much time.
    """
    if "train.threads" in candidate.settings.named:
        candidate.trial = try_steps(candidate.settings, prepared, conditions, seconds)
        return
    alone = with_open(candidate.settings, {"train.threads": 1})
    candidate.trial = try_steps(alone, prepared, conditions, seconds / 2)
    if (threads := threads_worth_trying()) > 1:
        shared = with_open(candidate.settings, {"train.threads": threads})
        trial = try_steps(shared, prepared, conditions, seconds / 2, 2 * candidate.trial.seconds_per_step)
        if trial.seconds_per_step < _FASTER * candidate.trial.seconds_per_step:
            candidate.settings, candidate.trial = shared, trial
            return
    candidate.settings = alone


def _is_worth_trying(smaller: Candidate, larger: Candidate, seconds: float) -> bool:
    """Return whether the larger size could see enough tokens, if speed falls less than weights grow."""
    share = (smaller.weights.all / larger.weights.all) ** 0.5
    return sizes.is_enough(smaller.tokens(seconds) * share, larger.weights.inner)


def _with_batch_size(candidate: Candidate, smaller: Candidate | None, clock: Clock) -> RunSettings:
    """Choose the batch size for the number of tokens expected, as far as that is known."""
    tokens = smaller.tokens(clock.left()) / 2 if smaller is not None else 4e4 * clock.left()
    return with_open(candidate.settings, _batch(candidate.settings, tokens))


def _batch(settings: RunSettings, tokens: float) -> dict[str, Any]:
    train: Any = settings.train
    model: Any = settings.model
    length = train.length or cast(NetworkFamily, settings.find_family()).row_length or model.context
    return {"train.batch": sizes.batch_shape(tokens, length).batch}


def _finish(chosen: Candidate, clock: Clock) -> RunSettings:
    """Choose the dropout by the number of passes over the text that are expected."""
    epochs = chosen.tokens(clock.left()) / chosen.epoch
    return with_open(chosen.settings, {"model.dropout": sizes.dropout(epochs)})


def _report(chosen: Candidate, settings: RunSettings, clock: Clock) -> Iterator[Event]:
    if chosen.trial is None:
        yield Note(
            f"the time is up before any size could be tried; using {settings.family} {chosen.rung.about}"
        )
        return
    tokens = chosen.tokens(clock.left())
    figures = {
        "size": chosen.rung.name or "as set",
        "parameters": chosen.weights.all,
        "inner_parameters": chosen.weights.inner,
        "expected_tokens": round(tokens),
        "expected_epochs": round(tokens / chosen.epoch, 2),
        "trial_tokens_per_second": round(chosen.trial.tokens_per_second, 1),
    }
    yield Measure({"plan": figures})
    speed = f"{chosen.trial.tokens_per_second:,.0f} per second"
    yield Note(
        f"plan: {settings.family} {chosen.rung.about}, {chosen.weights.all:,} parameters; about "
        f"{tokens:,.0f} tokens at {speed}, {figures['expected_epochs']:g} epochs"
    )

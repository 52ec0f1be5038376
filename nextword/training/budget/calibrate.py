"""``--minutes``: choose what was left open so that the minutes teach as much as they can.

How much of the text is read, and how many subwords there are, is decided by the task before. Then a few real
steps of some sizes are timed, and the largest size is taken that can still learn from enough tokens for each
of its weights (`sizes.TOKENS_PER_WEIGHT`) in the time that is left. What somebody named stays.
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
from nextword.training.budget.trial import Trial, Weights, count_weights, threads_worth_trying, try_steps
from nextword.training.order import Conditions

_SHARE = 0.08  # of the time, for trials
_MOST = 8.0  # seconds of trials
_FASTER = 0.95  # more threads must save so much to be used
_LENGTH = 64  # positions of a row, where neither the settings nor the model say


def calibrate(
    settings: RunSettings, prepared: Prepared, conditions: Conditions
) -> Generator[Event, None, RunSettings]:
    """The settings of a training that fits the time that is left."""
    clock = conditions.clock
    if clock.seconds is None:
        return settings
    yield Stage("time a few steps")
    allowance = clock.used() + min(_MOST, _SHARE * clock.seconds)
    chosen = _choose(
        (_candidate(settings, rung, prepared) for rung in _rungs(settings)), prepared, conditions, allowance
    )
    settings = _finish(chosen, clock)
    yield from _tell(chosen, settings, clock)
    return settings


@dataclass
class Candidate:
    """A size that may be chosen, and what is known of it."""

    settings: RunSettings
    rung: Rung
    weights: Weights
    trial: Trial | None = None

    def tokens(self, seconds: float) -> float:
        """Words that can be learned from in so many seconds; 0 where there was no time to try."""
        return 0.0 if self.trial is None else self.trial.tokens_per_second * max(0.0, seconds)

    @property
    def epoch(self) -> int:
        """Words of one pass over the text."""
        return 1 if self.trial is None else max(1, self.trial.epoch)


def _rungs(settings: RunSettings) -> list[Rung]:
    """The sizes that are open; one where somebody has named a size, or the family has no others."""
    found = cast(NetworkFamily, settings.find_family()).ladder
    if not found or any(key in settings.named for key in found[0].settings if key.startswith("model.")):
        return [Rung("", {}, "as set")]
    return list(found)


def _candidate(settings: RunSettings, rung: Rung, prepared: Prepared) -> Candidate:
    """A size with its first guess of a batch."""
    settings = with_open(settings, rung.settings)
    settings = with_open(settings, settings.find_task().fitting(settings, prepared))
    return Candidate(settings, rung, count_weights(settings, prepared))


def _choose(
    candidates: Iterator[Candidate], prepared: Prepared, conditions: Conditions, until: float
) -> Candidate:
    """Up from the smallest, as long as there is enough to learn from and time to try."""
    clock = conditions.clock
    chosen: Candidate | None = None
    for candidate in candidates:
        left = until - clock.used()
        if chosen is not None and (left <= 0 or not _is_worth_trying(chosen, candidate, clock.left())):
            break
        candidate.settings = _shaped(candidate, chosen, clock)
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
    """Time a size with one thread, and with all if that is faster: small products gain little from sharing,
    and where other programs use the processors, threads that wait for each other lose much."""
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
    """Whether the larger one could learn from enough words, if its speed fell less than its weights grow."""
    share = (smaller.weights.all / larger.weights.all) ** 0.5
    return sizes.is_enough(smaller.tokens(seconds) * share, larger.weights.inner)


def _shaped(candidate: Candidate, smaller: Candidate | None, clock: Clock) -> RunSettings:
    """A batch for the number of words there will be, as far as that is known."""
    tokens = smaller.tokens(clock.left()) / 2 if smaller is not None else 4e4 * clock.left()
    return with_open(candidate.settings, _batch(candidate.settings, tokens))


def _batch(settings: RunSettings, tokens: float) -> dict[str, Any]:
    train: Any = settings.train
    length = train.length or getattr(settings.model, "context", None) or _LENGTH
    return {"train.batch": sizes.batch_shape(tokens, length).batch}


def _finish(chosen: Candidate, clock: Clock) -> RunSettings:
    """What follows from the number of words that will be learned from."""
    epochs = chosen.tokens(clock.left()) / chosen.epoch
    return with_open(chosen.settings, {"model.dropout": sizes.dropout(epochs)})


def _tell(chosen: Candidate, settings: RunSettings, clock: Clock) -> Iterator[Event]:
    if chosen.trial is None:
        yield Note(
            f"the time is over before the first step: {settings.family} {chosen.rung.about} stays as it is"
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
    speed = f"{chosen.trial.tokens_per_second:,.0f} a second"
    yield Note(
        f"plan: {settings.family} {chosen.rung.about}, {chosen.weights.all:,} parameters; about "
        f"{tokens:,.0f} tokens at {speed}, the text {figures['expected_epochs']:g} times"
    )

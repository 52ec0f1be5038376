"""``--minutes``: choose the settings that the user left open so that the model learns most in the time.

The task has already decided how much of the text is read and how many subwords there are. Then a few real
steps of some sizes are timed, and the largest size is chosen that can still be trained on enough examples
(`Task.is_enough`) in the time that is left. Settings that the user gave stay.

Steps are timed by the processor, not by the clock, so that a size does not depend on what other programs do
in those seconds; a note tells when they do much. A model that was planned before (`plan`) keeps its plan.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, cast

from nextword.core.events import Event, Measure, Note, Stage
from nextword.core.family import NetworkFamily, Rung
from nextword.core.task import Prepared
from nextword.runs.settings import RunSettings, with_open
from nextword.system import threads
from nextword.training.budget.plan import Plan
from nextword.training.budget.trial import Trial, WeightCounts, count_weights, threads_worth_trying, try_steps
from nextword.training.order import Conditions

_SHARE = 0.08  # of the time, for trials
_MOST = 8.0  # seconds of trials
_GUESSED = 4e4  # tokens a second, before any step is timed
_WRONG = 2  # a batch so many times too large is made smaller
_BUSY = 0.25  # of the processors: where other programs use more, a note says so
_FASTER = 0.95  # more threads are used only if a step then takes less than this share of the time


def calibrate(
    settings: RunSettings, prepared: Prepared, conditions: Conditions
) -> Generator[Event, None, RunSettings]:
    """Choose settings so that training fits the time that is left."""
    clock = conditions.clock
    if clock.seconds is None:
        return settings
    earlier = conditions.plans.find(settings)
    if earlier is not None:
        yield Measure({"plan": {**earlier.figures, "made_before": True}})
        yield Note(f"plan: the one made before for {settings.name}: {earlier.describe()}")
        return earlier.applied(settings)
    yield Stage("time a few steps")
    began, others = clock.used(), threads.Others()
    allowance = Allowance(min(_MOST, _SHARE * clock.seconds), clock.left(), conditions.plans.are_shared)
    chosen = _choose(
        (_candidate(settings, rung, prepared) for rung in _rungs(settings)), prepared, conditions, allowance
    )
    planned = _finish(chosen, allowance)
    figures = _figures(chosen, planned, allowance)
    conditions.plans.add(settings, Plan.made(settings, planned, figures))
    if conditions.plans.are_shared:
        clock.give_back(clock.used() - began)
    yield from _report(chosen, planned, figures)
    if not conditions.ranks.is_distributed:  # other ranks are not other programs
        yield from _warn_if_busy(others.look())
    return planned


class Allowance:
    """The time for trials: so much processor time, so that a busy machine tries as many sizes as an idle one.

    By the clock it is at most twice as long. What is left for training is counted in the same way; trials
    for several training runs (``is_extra``) take nothing from it.
    """

    def __init__(self, seconds: float, training: float, is_extra: bool = False) -> None:
        self._seconds, self._training, self._is_extra = seconds, training, is_extra
        self._began = time.thread_time(), time.monotonic()

    def left(self) -> float:
        """Return the seconds left; may be negative."""
        work, clock = time.thread_time() - self._began[0], time.monotonic() - self._began[1]
        return min(self._seconds - work, 2 * self._seconds - clock)

    def for_training(self) -> float:
        """Return the seconds that training will have."""
        return self._training - (0.0 if self._is_extra else time.thread_time() - self._began[0])


@dataclass
class Candidate:
    """A size that may be chosen, and what is known about it."""

    settings: RunSettings
    rung: Rung
    weights: WeightCounts
    trial: Trial | None = None

    def tokens(self, seconds: float) -> float:
        """Return the tokens it can be trained on in this many seconds; 0 if there was no time to try."""
        return 0.0 if self.trial is None else self.trial.speed * max(0.0, seconds)

    @property
    def epoch(self) -> int:
        """Return the tokens of one pass over the text."""
        return 1 if self.trial is None else max(1, self.trial.epoch)

    @property
    def most_steps(self) -> int | None:
        """Return after how many steps more do not help, where the task says so and a size was tried."""
        if self.trial is None:
            return None
        steps = self.epoch / self.trial.tokens_per_step
        most = self.settings.find_task().most_epochs(self.settings, steps)
        return None if most is None else math.ceil(most * steps)


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
    candidates: Iterator[Candidate], prepared: Prepared, conditions: Conditions, allowance: Allowance
) -> Candidate:
    """Climb from the smallest size while there is enough text to learn from and time to try."""
    clock = conditions.clock
    chosen: Candidate | None = None
    for candidate in candidates:
        left = allowance.left()
        if chosen is not None and (
            left <= 0 or not _is_worth_trying(chosen, candidate, allowance.for_training())
        ):
            break
        candidate.settings = _with_batch_size(candidate, chosen, prepared, allowance)
        if clock.left() <= 0:
            return chosen or candidate
        _try(candidate, prepared, conditions, left / 2)
        if chosen is None:
            _correct_batch_size(candidate, prepared, conditions, allowance)
        seconds = allowance.for_training()
        if chosen is not None and not _is_enough(candidate, candidate.tokens(seconds), candidate):
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
    return _is_enough(larger, smaller.tokens(seconds) * share, smaller)


def _is_enough(candidate: Candidate, tokens: float, tried: Candidate) -> bool:
    """Return whether so many tokens can train a size; a size that was tried knows how many a pass has."""
    task = candidate.settings.find_task()
    return task.is_enough(candidate.settings, tokens, tried.epoch, candidate.weights.inner)


def _with_batch_size(
    candidate: Candidate, smaller: Candidate | None, prepared: Prepared, allowance: Allowance
) -> RunSettings:
    """Choose the batch size for the number of tokens expected, as far as that is known."""
    left = allowance.for_training()
    tokens = smaller.tokens(left) / 2 if smaller is not None else _GUESSED * left
    settings = candidate.settings
    return with_open(settings, settings.find_task().sized(settings, prepared, tokens))


def _correct_batch_size(
    candidate: Candidate, prepared: Prepared, conditions: Conditions, allowance: Allowance
) -> None:
    """Make the batches of the smallest size smaller where it is far slower than guessed, and time it again.

    Long sources of short targets are such a case: there would be a quarter of the steps that are wanted.
    """
    settings = candidate.settings
    task, tokens = settings.find_task(), candidate.tokens(allowance.for_training())
    corrected = with_open(settings, task.sized(settings, prepared, tokens))
    before, after = cast(Any, settings.train).batch, cast(Any, corrected.train).batch
    if _WRONG * after <= before and allowance.left() > 0:
        candidate.settings = corrected
        _try(candidate, prepared, conditions, allowance.left() / 2)


def _finish(chosen: Candidate, allowance: Allowance) -> RunSettings:
    """Choose what depends on the number of passes over the examples, and how many are useful at most."""
    task, settings = chosen.settings.find_task(), chosen.settings
    settings = with_open(
        settings, task.regularized(settings, chosen.tokens(allowance.for_training()) / chosen.epoch)
    )
    if (most := chosen.most_steps) is not None:
        settings = with_open(settings, {"train.steps": most})
    return settings


def _figures(chosen: Candidate, planned: RunSettings, allowance: Allowance) -> dict[str, Any]:
    """Return what is known of the chosen size."""
    size = {
        "size": chosen.rung.name or "as set",
        "about": chosen.rung.about,
        "parameters": chosen.weights.all,
        "inner_parameters": chosen.weights.inner,
    }
    if chosen.trial is None:
        return size
    tokens = chosen.tokens(allowance.for_training())
    if most := cast(Any, planned.train).steps:
        tokens = min(tokens, most * chosen.trial.tokens_per_step)
    return size | {
        "expected_tokens": round(tokens),
        "expected_epochs": round(tokens / chosen.epoch, 2),
        "trial_tokens_per_second": round(chosen.trial.speed, 1),
    }


def _report(chosen: Candidate, settings: RunSettings, figures: dict[str, Any]) -> Iterator[Event]:
    if chosen.trial is None:
        yield Note(
            f"the time is up before any size could be tried; using {settings.family} {chosen.rung.about}"
        )
        return
    yield Measure({"plan": figures})
    unit = settings.find_task().unit
    yield Note(
        f"plan: {settings.family} {chosen.rung.about}, {chosen.weights.all:,} parameters; about "
        f"{figures['expected_tokens']:,} {unit} at {chosen.trial.speed:,.0f} per second, "
        f"{figures['expected_epochs']:g} epochs"
    )


def _warn_if_busy(used: float) -> Iterator[Event]:
    """Note that other programs used the processors while steps were timed."""
    allowed = threads.allowed()
    if used > _BUSY * allowed:
        yield Note(
            f"the machine is busy: other programs used {used:.1f} of {allowed} processors while steps were "
            "timed; the size was chosen by processor time, and training may read fewer tokens than planned"
        )

"""The training loop: update on the next batches, report, validate, stop in time.

Everything that changes is in the `TrainingState`; everything that happens is yielded as an event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from nextword.core.display import LONG, about
from nextword.core.events import Done, Event, Measure, Note, Stage, Step
from nextword.core.task import Batch, Batches
from nextword.models import precision
from nextword.models.network import device_of
from nextword.system import threads
from nextword.system.signals import Interrupted
from nextword.training import nan
from nextword.training.checkpointing import SavePoint as SavePoint
from nextword.training.checkpointing import SaveSchedule
from nextword.training.clock import StepTimer, peak_memory, saving_seconds
from nextword.training.job import Job
from nextword.training.state import TrainingState, begin
from nextword.training.update import Learned, Learner
from nextword.training.validation import Validation

_TIMED = 3  # steps after which the time of the others is estimated


@dataclass(frozen=True)
class Outcome:
    """The model with its best weights, and the facts that ``training.json`` records."""

    model: Any
    facts: dict[str, Any]


def fit(job: Job, state: TrainingState | None = None) -> Iterator[Event]:
    """Train until plan, minutes, patience or a signal ends it; the last event is Done(Outcome)."""
    state = begin(job) if state is None else state
    with threads.using(job.threads) as used:
        dtype = precision.dtype_of(job.settings.precision)
        learner = Learner(job.settings, job.objective, job.stop)
        measuring = Validation(job.held_out, job.settings, dtype, job.clock, job.stop, job.is_warm, job.again)
        job.clock.reserve("save", saving_seconds(_size(job.network), None) if job.clock.is_limited else 0.0)
        job.stop.save_on_signal()
        yield Stage("train", None if job.clock.is_limited else state.plan.steps, "steps")
        yield from _train(job, learner, measuring, state)
        yield from measuring.finish(state)
    network = state.engine.full_network(job.network)
    facts = {
        "steps": state.step,
        "epochs": round(state.epoch + state.index / job.batches.per_epoch, 3),
        "tokens": state.tokens,
        "plan": state.plan.to_json(),
        "best_step": state.step if state.best is None else state.best.step,
        "stopped": job.stop.name,
        "skipped": state.skipped,
        "threads": used,
        "precision": job.settings.precision,
        "device": str(device_of(job.network)),
        **({"ranks": job.ranks.world, "parallel": state.engine.name} if job.ranks.is_distributed else {}),
        **measuring.facts(network),
    }
    yield Done(Outcome(job.model(network), facts))


def _train(job: Job, learner: Learner, measuring: Validation, state: TrainingState) -> Iterator[Event]:
    job.network.train()
    timer, settings = StepTimer(job.clock), job.settings
    reporter, saves = StepReporter(job, state, timer), SaveSchedule(settings.save_every)
    skipped = 0  # consecutive batches whose loss or gradient was NaN
    upcoming = iterate_batches(job.batches, state.epoch, state.index)
    if measuring.was_interrupted(state):
        yield from measuring.measure(state)
    while True:
        agreed = _agree(job, state, timer, saves)
        if _is_done(job, state, agreed):
            break
        began = job.clock.used()
        place, batches = (state.epoch, state.index), []
        for _ in range(settings.accumulate):
            state.epoch, state.index, batch = next(upcoming)
            batches.append(batch)
        carried = state.carried
        try:
            learned = learner.update(state, batches)
        except Interrupted:  # the state is that of the step before
            (state.epoch, state.index), state.carried = place, carried
            continue
        if not learned.is_finite:
            state.carried = carried
            skipped = yield from nan.skip(learner, learned, state, batches, skipped)
            continue
        skipped = 0
        state.add_loss(learned.loss)
        timer.add(job.clock.used() - began, learned.tokens)
        timer.revise(state.step, state.plan, settings.steps)
        yield from reporter.step(learned)
        if measuring.is_due(state):
            yield from measuring.measure(state)
        state.seconds += job.clock.used() - began
        if saves.is_due(state.step):
            yield from saves.point(state)
    if agreed.stop:
        yield from saves.point(state, is_last=True)
    yield from reporter.end()
    yield from measuring.measure_last(state)
    if job.stop.number is not None and not agreed.stop:  # the signal came while measuring
        yield from saves.point(state, is_last=True)


def iterate_batches(source: Batches, epoch: int, index: int) -> Iterator[tuple[int, int, Batch]]:
    """Yield batches, epoch after epoch, from (epoch, index) on; with each, the (epoch, index) after it."""
    while True:
        for batch in source.batches(epoch, index):
            index += 1
            if index == source.per_epoch:
                yield epoch + 1, 0, batch
            else:
                yield epoch, index, batch
        epoch, index = epoch + 1, 0


class Agreed(NamedTuple):
    """What all ranks do next."""

    stop: bool  # one of them has received a signal
    is_over: bool  # the time is up by the clock of rank 0


def _agree(job: Job, state: TrainingState, timer: StepTimer, saves: SaveSchedule) -> Agreed:
    """Agree on the next step: rank 0's clock decides for all ranks, and a signal to one stops all."""
    own = (job.stop.number or 0, state.plan.steps, timer.is_over(), saves.is_time())
    every = job.ranks.all_gather(*own)
    _, steps, is_over, saves.wanted = every[0]
    number = int(max(number for number, *_ in every))
    if not job.ranks.is_first:
        state.plan.revise(state.step, int(steps))
    if number:
        job.stop.number = number
    return Agreed(bool(number), bool(is_over))


def _is_done(job: Job, state: TrainingState, agreed: Agreed) -> bool:
    """Return whether the plan is done, a signal came, patience ran out, or another step would be too late."""
    return (
        state.step >= state.plan.steps
        or agreed.stop
        or 0 < job.settings.patience <= state.waited
        or agreed.is_over
    )


class StepReporter:
    """Reports updates: a row for metrics.jsonl at fixed steps, an event a few times a second for people."""

    def __init__(self, job: Job, state: TrainingState, timer: StepTimer) -> None:
        self.job, self.state, self.timer = job, state, timer
        self._last: Step | None = None
        self._shown = -1
        self._told = job.clock.is_limited  # how long it takes: with --minutes that is known
        self._made = 0

    def step(self, learned: Learned) -> Iterator[Event]:
        """Report an update."""
        step, is_first = self.state.step, self._last is None
        self._last = self._event(learned)
        self._made += 1
        if not self._told and self._made >= _TIMED:
            yield from self._announce()
        if step % self.job.settings.log_every == 0 or step == 1:
            yield Measure(row_of(self._last))
        if self.timer.should_show() or is_first:
            self._shown = step
            yield self._last

    def _announce(self) -> Iterator[Event]:
        """Say how long training takes, as soon as a few steps have been timed."""
        self._told = True
        left, steps = self.timer.left(self.state.step, self.state.plan), self.state.plan.steps
        if left is not None and left > LONG:
            yield Note(f"training takes {about(left)}: {steps:,} steps (Ctrl-C stops it and saves the model)")

    def end(self) -> Iterator[Event]:
        """Report the last update, and why training stopped if that may be a surprise."""
        if self._last is not None and self._shown != self._last.step:
            yield self._last
        if self.job.stop.number is not None:
            yield Note(f"stopped by {self.job.stop.name} after step {self.state.step:,}; saving the model")
        elif 0 < self.job.settings.patience <= self.state.waited:
            yield Note(f"stopped after step {self.state.step:,}: no longer improving on the held-out text")

    def _event(self, learned: Learned) -> Step:
        state = self.state
        return Step(
            step=state.step,
            steps=state.plan.steps,
            seconds=self.job.clock.used(),
            seconds_left=self.timer.left(state.step, state.plan),
            tokens=state.tokens,
            loss=learned.loss,
            rate=learned.rate,
            norm=learned.norm,
            parts=learned.parts,
            tokens_per_second=self.timer.tokens_per_second,
            memory=peak_memory(),
            unit=self.job.unit,
        )


def row_of(step: Step) -> dict[str, Any]:
    """Return an event as a row of metrics.jsonl."""
    return {
        "step": step.step,
        "seconds": round(step.seconds, 3),
        "tokens": step.tokens,
        "loss": step.loss,
        "rate": step.rate,
        "norm": step.norm,
        **{f"loss_{name}": value for name, value in step.parts.items()},
        "tokens_per_second": round(step.tokens_per_second, 1),
    }


def _size(network: Any) -> int:
    """Return the size of the weights in bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in network.state_dict().values())

"""Checkpoints: when they are written, what is in them, and how a training run resumes from one.

A checkpoint has everything that decides what comes next (state, plan, vocabulary, the order), so nothing is
fitted or chosen a second time; the examples are not in it and must be the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nextword.core.display import show_size
from nextword.core.errors import DamagedError, RunError
from nextword.core.events import Event, Note
from nextword.core.task import Prepared, Task
from nextword.runs.settings import RunSettings
from nextword.store.checkpoints import Checkpoint, Checkpoints
from nextword.store.writing import NewRun
from nextword.system import processor
from nextword.system.machine import serialized
from nextword.training.clock import Clock
from nextword.training.ranks import Ranks

if TYPE_CHECKING:
    from nextword.training.job import Job
    from nextword.training.state import TrainingState

STATE, NUMBERS, METRICS = "state.safetensors", "state.json", "metrics.jsonl"
CONFIG, BEGUN = "config.toml", "begun.json"


@dataclass
class Checkpointer:
    """Writes the checkpoints of a training run, and restores the one it resumes from."""

    run: NewRun
    task: Task
    packed_order: dict[str, Any]  # the order and its settings, as JSON
    checkpoint: Checkpoint | None = None  # to resume from
    clock: Clock = field(default_factory=Clock)
    minutes: float | None = None  # of the first command: they decide how much of the text is read
    ranks: Ranks = field(default_factory=Ranks)
    resumed: list[int] = field(default_factory=list)  # steps at which it was resumed
    _last: int = 0  # the step of the newest checkpoint
    _failed: bool = False
    _about: dict[str, Any] = field(default_factory=dict)
    _is_sharded: bool = False  # every rank writes its own file

    @cached_property
    def _checkpoints(self) -> Checkpoints:
        training = secrets.token_hex(4) if self.checkpoint is None else self.checkpoint.training
        return Checkpoints(self.run.target, training)

    @property
    def resumes(self) -> bool:
        """Return whether training resumes from a checkpoint."""
        return self.checkpoint is not None

    @property
    def reading_clock(self) -> Clock:
        """Return the clock of the first command, which decides how much of the text is read."""
        return Clock.minutes(self.minutes)

    def vocabulary(self) -> Any:
        """Return the vocabulary of the checkpoint, so that it is not fitted a second time."""
        return None if self.checkpoint is None else self.task.open(self.checkpoint.folder)

    def begin(
        self, job: Job, settings: RunSettings, prepared: Prepared, metrics: list[dict[str, Any]]
    ) -> Iterator[Event]:
        """Check text and machine before the first step, and collect what every checkpoint records."""
        self._settings, self._vocabulary, self._metrics = settings, prepared.vocabulary, metrics
        self._about = {"asked": self.packed_order, "text": prepared.facts.__dict__, **describe(job, prepared)}
        carries = job.objective.carries
        self._is_sharded = job.ranks.is_distributed and (carries or job.settings.parallel == "fsdp")
        if self.checkpoint is None:
            return
        record = self.checkpoint.folder.read_json(BEGUN)
        check_text(record, self._about, str(self.run.target))
        for name in ("threads", "device", "torch", "instructions"):
            if (was := record.get(name)) != (now := self._about[name]):
                yield Note(f"{name} was {was} before and is {now} now, so the last digits may differ")
        if (was := record.get("precision")) != (now := self._about["precision"]):
            yield Note(
                f"precision was {was} before and is {now} now, so numbers differ slightly from here on"
            )
        if (then := record.get("ranks", 1)) != self.ranks.world:
            now = self.ranks.world
            yield Note(f"there were {then} ranks before and there are {now} now, so numbers may differ")

    def restore(self, job: Job, state: TrainingState) -> Iterator[Event]:
        """Restore the state of the checkpoint and the rows of metrics written up to then."""
        if self.checkpoint is None:
            return
        from safetensors import SafetensorError

        from nextword.training.distributed.shards import read_state

        folder = self.checkpoint.folder
        values = folder.read_json(NUMBERS)
        try:
            state.restore(read_state(folder, state.engine), values["state"])
            rows = [json.loads(line) for line in folder.read_text(METRICS).split("\n") if line]
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise DamagedError(
                f"cannot resume from '{folder.path}' ({error}); start over with --overwrite"
            ) from error
        self._metrics[:] = rows
        if not job.clock.is_limited:
            state.plan.revise(state.step, job.steps)  # more steps may be asked for now
        self._last = state.step
        self.resumed = [*values.get("resumed", []), state.step]
        yield Note(f"resuming after step {state.step:,} of {self.run.target}")

    def follow(self, events: Iterable[Event]) -> Iterator[Event]:
        """Pass on the events of the training loop; write a checkpoint at every `SavePoint`."""
        for event in events:
            if isinstance(event, SavePoint):
                if self.ranks.is_first:
                    yield from self._save(event.state, event.is_last)
                elif self._is_sharded:
                    self._write_shard(event.state)
            else:
                yield event

    def _save(self, state: TrainingState, is_last: bool) -> Iterator[Event]:
        if is_last:
            size = sum(each.nbytes for each in state.to_tensors().values())
            yield Note(f"saving a checkpoint of step {state.step:,} ({show_size(size)})")
        try:
            self._write(state)
            if is_last:
                self._checkpoints.hand_over(self.run.path)
        except (RunError, OSError, MemoryError) as error:
            if not self._failed:
                last = f"the last one is of step {self._last:,}" if self._last else "there is no earlier one"
                why = "out of memory" if isinstance(error, MemoryError) else error
                yield Note(f"no checkpoint of step {state.step:,}: {why}; {last}; training continues")
            self._failed = True
            return
        self._last, self._failed = state.step, False
        if is_last:
            yield Note("to resume later, run the same command with --resume")

    def _write(self, state: TrainingState) -> None:
        if self._is_sharded:
            self._write_shards(state)
        else:
            data = serialized(state.to_tensors())
            with self._checkpoints.writing(state.step, len(data)) as new:
                new.write(STATE, data)
                self._write_rest(new, state)
        self.run.resumes = True

    def _write_shards(self, state: TrainingState) -> None:
        """Write a sharded checkpoint: rank 0 makes the folder, every rank writes its file into it."""
        from nextword.training.distributed.shards import put_together, write_part

        own = sum(each.nbytes for each in state.to_tensors().values())
        need = own * (self.ranks.world if state.engine.name == "fsdp" else 1)
        has_sent = False
        try:
            with self._checkpoints.writing(state.step, need) as new:
                has_sent = True
                self.ranks.broadcast(str(new.path))
                put_together(new, self.ranks.gather(write_part(new.path, state)))
                self._write_rest(new, state)
        finally:
            if not has_sent:
                self.ranks.broadcast(None)

    def _write_shard(self, state: TrainingState) -> None:
        """Write the shard of a rank other than 0, if rank 0 could make the folder."""
        from nextword.training.distributed.shards import write_part

        if (folder := self.ranks.broadcast(None)) is not None:
            self.ranks.gather(write_part(Path(folder), state))

    def _write_rest(self, new: NewRun, state: TrainingState) -> None:
        numbers = {"state": state.to_json(), "used": self.clock.used(), "resumed": self.resumed}
        new.write(NUMBERS, json.dumps(numbers) + "\n")
        new.write(METRICS, "".join(json.dumps(row) + "\n" for row in self._metrics))
        new.write(CONFIG, self._settings.to_toml())
        new.write(BEGUN, json.dumps(self._about) + "\n")
        self.task.save(self._vocabulary, new)


def check_text(then: dict[str, Any], now: dict[str, Any], run: str) -> None:
    """Check that the text is the one that the training run was started with."""
    before, after = then["text"], now["text"]
    for what, key in (("the text", "ids"), ("the held-out text", "held_out")):
        if then[key] != now[key] or (key == "ids" and before["sha256"] != after["sha256"]):
            sizes = f": it had {before['bytes']:,} bytes and has {after['bytes']:,}" if key == "ids" else ""
            raise RunError(
                f"{what} is not the one that '{run}' was started with{sizes} (SHA-256 {then[key][:12]}…, now "
                f"{now[key][:12]}…); use the same text, or start over with this one (--overwrite)"
            )


EMPTY = hashlib.sha256().hexdigest()  # of no held-out examples


def describe(job: Job, prepared: Prepared) -> dict[str, Any]:
    """Return what a checkpoint records: hashes of the examples, threads, device, torch version, precision."""
    import torch

    from nextword.models.network import device_of

    return {
        "ids": prepared.digest(),
        "held_out": EMPTY if job.held_out is None else job.held_out.digest(),
        "threads": job.threads,
        "device": str(device_of(job.network)),
        "torch": torch.__version__,
        "precision": job.settings.precision,
        "bf16": processor.find_out().bf16,
        "instructions": os.environ.get(processor.LIMIT, "all"),
        "ranks": job.ranks.world,
    }


EVERY = 120.0  # seconds between two checkpoints
SHARE = 0.05  # of the time goes to checkpoints, at most


@dataclass(frozen=True)
class SavePoint(Event):
    """A state that training can resume from; valid until the next event is requested."""

    state: TrainingState
    is_last: bool = False  # a signal has stopped training


class SaveSchedule:
    """Decides when to save: every N steps, or by the clock."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.wanted: float = False  # by the clock, after the current step
        self._last, self._cost = time.monotonic(), 0.0

    def is_due(self, step: int) -> bool:
        """Return whether the state after this step should be saved."""
        return step % self.every == 0 if self.every else bool(self.wanted)

    def is_time(self) -> bool:
        """Return whether the last checkpoint was long enough ago."""
        return time.monotonic() - self._last >= max(EVERY, self._cost / SHARE)

    def point(self, state: TrainingState, is_last: bool = False) -> Iterator[Event]:
        """Yield the state to be saved; how long that takes decides when to save next."""
        began = time.monotonic()
        yield SavePoint(state, is_last)
        self._last = time.monotonic()
        self._cost = self._last - began

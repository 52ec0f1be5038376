"""One thread for each model: it runs the engine, and the event loop waits for what comes out.

The event loop hands over requests and takes back tokens; it never computes, so it answers `/live` while every
model is busy. Everything of one step is delivered in one call, however many clients wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from nextword.core.contracts import LanguageModel, Tokenizer
from nextword.core.errors import NextwordError
from nextword.decode.engine import Engine, Full, Progress
from nextword.decode.requests import Request, Row, Scored
from nextword.system import threads

_log = logging.getLogger("nextword.server")
T = TypeVar("T")
Piece = tuple[Row, Scored]


def place_of(error: BaseException) -> str:
    """Tell the kind of an error and where it arose; its message may hold a prompt, which is not logged."""
    frames = traceback.extract_tb(error.__traceback__)
    last = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return type(error).__name__ + last


class Failed(Exception):  # noqa: N818 - wraps an error whose text is not for clients
    """Something of ours went wrong; the log has it."""


@dataclass(eq=False)
class _Job:
    """What one HTTP request waits for."""

    requests: Sequence[Request]
    streams: bool
    left: int = 0
    arrived: list[Piece] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Counts:
    """What a worker has done, for /metrics."""

    prompt_tokens: int = 0
    generated_tokens: int = 0
    steps: int = 0


class Worker:
    """A thread that owns a model. The event loop calls its methods, except `_run` and what that calls."""

    def __init__(self, name: str, model: Any, tokenizer: Tokenizer | None, rows: int, waiting: int) -> None:
        self.counts = Counts()
        self._model, self._tokenizer = model, tokenizer
        self.rows, self.most = rows, rows + waiting  # texts that are continued together; with those that wait
        self._sharing = _share if sys.modules.get("torch") else _as_it_is  # count models need no torch
        self._taken = 0  # rows and calls that are under way or wait
        self._jobs: dict[Request, _Job] = {}
        self._inbox: deque[Callable[[], None]] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name=f"model {name}", daemon=True)
        self._thread.start()

    # -- called by the event loop ---------------------------------------------------------------

    @property
    def running(self) -> int:
        """Return how many rows of the batch are taken."""
        return 0 if self._engine is None else self._engine.running

    @property
    def taken(self) -> int:
        """Return how many texts and calls are under way or wait."""
        return self._taken

    async def run(self, requests: Sequence[Request]) -> None:
        """Wait until requests are done; if the caller is cancelled, they leave the batch."""
        job = self._submit(requests, streams=False)
        try:
            await job.changed.wait()
        finally:
            self._leave(job)
        self._raise(job)

    async def stream(self, requests: Sequence[Request]) -> AsyncIterator[list[Piece]]:
        """Yield tokens as they come, all that have arrived at a time; if left early, the requests leave."""
        job = self._submit(requests, streams=True)
        try:
            while True:
                await job.changed.wait()
                job.changed.clear()
                arrived, job.arrived = job.arrived, []
                if arrived:
                    yield arrived
                if not job.left and not job.arrived:
                    break
        finally:
            self._leave(job)
        self._raise(job)

    async def call(self, function: Callable[[], T]) -> T:
        """Run a function in the thread of the model, between two steps."""
        self._take(1)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(value: Any, error: BaseException | None) -> None:
            if not future.done():
                future.set_result(value) if error is None else future.set_exception(error)

        def act() -> None:
            if future.cancelled():
                return
            try:
                value, error = function(), None
            except NextwordError as known:
                value, error = None, known
            except Exception as other:
                _log.error("a call in the thread of a model failed: %s", place_of(other))
                value, error = None, Failed()  # type: ignore[assignment]
            loop.call_soon_threadsafe(settle, value, error)

        self._post(act)
        try:
            return await future
        finally:
            self._taken -= 1

    def close(self) -> None:
        """End the thread when everything under way is done."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended, at most this long."""
        self._thread.join(seconds)

    def _submit(self, requests: Sequence[Request], streams: bool) -> _Job:
        self._take(sum(request.needed for request in requests))
        self._loop = asyncio.get_running_loop()
        job = _Job(requests, streams, left=len(requests))
        for request in requests:
            self._jobs[request] = job

        def act() -> None:
            for request in requests:
                self._admit(request)

        self._post(act)
        return job

    def _take(self, count: int) -> None:
        if self._taken and self._taken + count > self.most:
            raise Full
        self._taken += count

    def _leave(self, job: _Job) -> None:
        """Let go of a job, finished or not."""
        for request in job.requests:
            self._taken -= request.needed
            self._jobs.pop(request, None)
            if not request.is_done:
                request.has_left = True  # the engine looks at it before its next step
        if job.left:
            self._post(lambda: None)

    def _raise(self, job: _Job) -> None:
        for request in job.requests:
            if request.error is not None:
                raise request.error
        if not all(request.is_done for request in job.requests):
            raise Failed

    def _deliver(self, pieces: Sequence[Piece], done: Sequence[Request]) -> None:
        """Hand what a step made to those who wait for it."""
        touched: set[_Job] = set()
        for row, token in pieces:
            if (job := self._jobs.get(row.request)) is not None:
                job.arrived.append((row, token))
                touched.add(job)
        for request in done:
            if (job := self._jobs.get(request)) is not None:
                job.left -= 1
                if job.streams or not job.left:
                    touched.add(job)
        for job in touched:
            job.changed.set()

    def _post(self, act: Callable[[], None]) -> None:
        with self._wake:
            self._inbox.append(act)
            self._wake.notify()

    # -- called by the thread -------------------------------------------------------------------

    def _run(self) -> None:
        if isinstance(self._model, LanguageModel) and self._tokenizer is not None:
            self._start_engine()
        while True:
            with self._wake:
                while not self._inbox and self._is_idle and not self._closed:
                    self._wake.wait()
                if self._closed and not self._inbox and self._is_idle:
                    return
                todo = list(self._inbox)
                self._inbox.clear()
            for act in todo:
                act()
            if self._engine is not None and not self._engine.is_idle:
                self._step(self._engine)

    @property
    def _is_idle(self) -> bool:
        return self._engine is None or self._engine.is_idle

    def _start_engine(self) -> None:
        """Make an engine, or none if that fails: the next request tries again."""
        self._engine = None
        try:
            self._engine = Engine(self._model, self._tokenizer, self.rows, waiting=2**31)  # see `_take`
        except Exception as error:
            _log.error("a model cannot be used: %s", place_of(error))

    def _admit(self, request: Request) -> None:
        if request.has_left:
            return
        if self._engine is None:
            self._start_engine()
        if self._engine is None:
            self._tell([], [request])
        else:
            self._engine.admit(request)

    def _step(self, engine: Engine) -> None:
        try:
            with self._sharing(engine.running):
                progress = engine.step()
        except Exception as error:
            _log.error("a step of a model failed, and so its requests: %s", place_of(error))
            self._start_engine()
            progress = Progress(done=list(self._jobs))
        self.counts.steps += 1
        self.counts.generated_tokens += len(progress.rows)
        pieces = [
            (row, row.tokens[-1])
            for row in progress.rows
            if (job := self._jobs.get(row.request)) is not None and job.streams
        ]
        if pieces or progress.done:
            self._tell(pieces, progress.done)

    def _tell(self, pieces: Sequence[Piece], done: Sequence[Request]) -> None:
        """Let the event loop deliver."""
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(self._deliver, pieces, done)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self._closed = True


def _share(rows: int) -> AbstractContextManager[object]:
    """Share the products of a step between idle processors, but for one: the event loop and clients need it.

    On two processors, products that wait for the other one cost a third of the answers a second.
    """
    most = 1 if rows < threads.FEW_ROWS else threads.allowed() - 1
    return threads.using(1 if most <= 1 else min(threads.free(), most))


def _as_it_is(rows: int) -> AbstractContextManager[object]:
    return nullcontext()

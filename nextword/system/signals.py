"""Signals: the first one stops, during training after the step and with the run saved; a second one leaves.

`Stop`: a training run says at once that it will stop, since a step of a large model takes seconds. Before
there is anything to save, and outside the main thread, signals keep their default behaviour.

`watch`: Python calls its signal handlers between two instructions of its own, so a long backward pass or
count would delay them by many seconds. The interpreter also writes each signal to a pipe at the moment it
arrives, and a thread reads that, so that a second Ctrl-C leaves at once even then.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

from nextword.system import launch

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name))
_APART = 0.3  # seconds: the same Ctrl-C may arrive twice, from the terminal and from a parent process
_PATIENCE = 1.0  # seconds after which a program that is still there says so
_told = False


class Interrupted(Exception):  # noqa: N818 - it is not an error
    """A signal has ended work that is not needed to save what was learned."""


class Stop:
    """``with Stop() as stop``: after `save_on_signal`, a signal only sets ``number``."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._saves = False
        self._may_interrupt = False
        self._before: dict[int, Any] = {}

    @property
    def name(self) -> str | None:
        """SIGINT, SIGTERM, SIGUSR1, or None."""
        return None if self.number is None else signal.Signals(self.number).name

    @property
    def exit_code(self) -> int:
        """Exit code of the program: 130 after Ctrl-C, 0 after the others, which ask politely."""
        return 128 + signal.SIGINT if self.number == signal.SIGINT else 0

    def save_on_signal(self) -> None:
        """Save on the next signal: from now on there is something worth saving."""
        self._saves = True

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Let a signal end the block with `Interrupted`: for long work that can be left out."""
        self._may_interrupt = True
        try:
            yield
        finally:
            self._may_interrupt = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *about: object) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, signal.SIG_DFL if before is None else before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            os._exit(128 + number)
        if self._saves:
            self.number = number
            tell(f"{signal.Signals(number).name}: saving what was learned; a second Ctrl-C leaves at once")
            if self._may_interrupt:
                self._may_interrupt = False
                raise Interrupted
            return
        before = self._before.get(number)
        if callable(before):
            before(number, frame)
        elif before != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


def watch() -> None:
    """Watch for a second SIGINT or SIGTERM from now on; in the main thread, unless another library does."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(os, "register_at_fork"):
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
        return
    os.register_at_fork(after_in_child=_unwatch)
    threading.Thread(target=_read, args=(reader,), daemon=True).start()


def tell(sentence: str) -> None:
    """Write a line on standard error from a signal handler or thread, where the streams may be in use."""
    global _told
    _told = True
    if launch.speaker().is_first:
        with suppress(OSError):
            os.write(2, f"\n{sentence}\n".encode())


def _read(reader: int) -> None:
    first: float | None = None
    while True:
        wait = None if first is None or _told else _PATIENCE
        if not select.select([reader], [], [], wait)[0]:
            if not _told:
                tell("stopping; a second Ctrl-C leaves at once")
            continue
        for number in os.read(reader, 64):
            if number not in (signal.SIGINT, signal.SIGTERM):
                continue
            now = time.monotonic()
            if first is not None and now - first > _APART:
                os._exit(128 + number)
            first = now if first is None else first


def _unwatch() -> None:
    """Keep the signals of a child process out of the pipe of its parent."""
    with suppress(ValueError):
        signal.set_wakeup_fd(-1)

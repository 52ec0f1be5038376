"""Signals during training: the step is finished and the training run is saved.

The first signal asks to stop and says so at once, since a step of a large model takes seconds; a second one
exits at once with what was saved. Before there is anything to save, and outside the main thread, signals keep
their default behaviour.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from nextword.system import leaving

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1") if hasattr(signal, name))


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
            leaving.tell(
                f"{signal.Signals(number).name}: saving what was learned; a second Ctrl-C leaves at once"
            )
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

"""A second Ctrl-C leaves at once, even while a compiled function runs.

Python calls its signal handlers between two instructions of its own, so a long backward pass or count would
delay them by many seconds. The interpreter also writes each signal to a pipe at the moment it arrives, and a
thread reads that.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import suppress

from nextword.system import launch

_APART = 0.3  # seconds: the same Ctrl-C may arrive twice, from the terminal and from a parent process
_PATIENCE = 1.0  # seconds after which a program that is still there says so
_told = False


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

"""Workers that sleep or die: python sleepers.py SECONDS starts two and waits for them, as estimation does."""

from __future__ import annotations

import os
import signal
import sys
import time

from nextword.ngram.limited import workers


def sleep(seconds: float) -> None:
    """The work of a job."""
    time.sleep(seconds)


def die(number: int) -> None:
    """A job that the system kills, as it does when memory is short."""
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    try:
        for event in workers.count(sleep, [(float(sys.argv[1]),)] * 4, 2):
            print(event, flush=True)
    except KeyboardInterrupt:
        print("stopped", flush=True)

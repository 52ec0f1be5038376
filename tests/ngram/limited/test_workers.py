"""Processes that count buckets: a killed one is told, Ctrl-C is not theirs, and they never outlive us."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sleepers

from nextword.core.errors import TrainingError
from nextword.core.events import Progress
from nextword.ngram.limited import workers

SCRIPT = Path(sleepers.__file__)


def started(seconds):
    process = subprocess.Popen(
        [sys.executable, SCRIPT, str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(busy(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


def busy(process):
    """The children that sleep, and not those that only watch."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    except OSError:
        return []


def test_killed_worker_is_one_sentence():
    with pytest.raises(
        TrainingError, match=r"was killed while counting n-grams, probably for lack of memory"
    ):
        list(workers.count(sleepers.die, [(0,), (1,), (2,)], 2))


def test_one_process_counts_without_workers():
    events = list(workers.count(sleepers.sleep, [(0.0,), (0.0,)], 1))
    assert events[1:] == [Progress(1), Progress(2)]


@pytest.mark.parametrize("later", [0.0, 1.0], ids=["about to begin", "at work"])
def test_workers_end_with_a_process_that_was_killed(later):
    process = started(600)
    children = busy(process.pid)
    assert len(children) == 2
    time.sleep(later)
    process.kill()  # they may be about to begin, or asleep
    process.wait()
    deadline = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{child}") for child in children) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = [child for child in children if os.path.exists(f"/proc/{child}")]
    for child in left:
        os.kill(int(child), signal.SIGKILL)
    process.stdout.close()
    process.stderr.close()
    assert left == []


def test_interrupt_from_the_terminal_is_told_once():
    process = started(2)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert "stopped" in out
    assert "Traceback" not in errors

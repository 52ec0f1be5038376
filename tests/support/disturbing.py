"""Trainings in processes of their own that are disturbed from outside: python disturbing.py FOLDER.

It prints one JSON object: exit codes, weights and words of each scene, and the weights of one left in peace.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from killing import child, ended, weights
from small_texts import LINES

from nextword.core import catalog
from nextword.store.checkpoints import find_last

MODEL = "lstm"
STEPS = ("--set", "train.steps=60")
LARGE = ("--set", "model.hidden=4000")


def begun(folder: Path, log: Path) -> int:
    """A training that has written a checkpoint."""
    process = child(folder, MODEL, "run", log, *STEPS)
    while not (folder / "run" / "checkpoint" / "LAST").exists():
        time.sleep(0.001)
    return process


@contextmanager
def paused(process: int) -> Iterator[None]:
    """It stands still within the block."""
    os.kill(process, signal.SIGSTOP)
    os.waitpid(process, os.WUNTRACED)
    yield
    os.kill(process, signal.SIGCONT)


def two_signals(folder: Path, log: Path) -> dict[str, Any]:
    """Ctrl-C and SIGTERM come before the step is over: it leaves at once, and --resume goes on."""
    process = begun(folder, log)
    with paused(process):
        os.kill(process, signal.SIGINT)
        os.kill(process, signal.SIGTERM)
    code = ended(process)
    found = find_last(folder / "run")
    again = ended(child(folder, MODEL, "run", log, *STEPS))
    return {"code": code, "damaged": found.damaged, "again": again, "weights": weights(folder / "run")}


def two_trainers(folder: Path, log: Path) -> dict[str, Any]:
    """A second one in the same folder is refused, whatever it asks for; the first one notices nothing."""
    process = begun(folder, log)
    with paused(process):
        resumed = ended(child(folder, MODEL, "run", log, *STEPS))
        (folder / "run").rename(folder / "aside")  # without a folder there is no --resume
        overwritten = ended(child(folder, MODEL, "run", log, *STEPS, "--overwrite"))
        (folder / "aside").rename(folder / "run")
    return {
        "resumed": resumed, "overwritten": overwritten, "code": ended(process),
        "weights": weights(folder / "run"),
    }  # fmt: skip


def no_memory(folder: Path, log: Path) -> dict[str, Any]:
    """A model that does not fit into the memory: one sentence, and nothing is left behind."""
    code = ended(child(folder, MODEL, "run", log, *STEPS, *LARGE, limit=400_000_000))
    return {"code": code, "left": sorted(name for name in os.listdir(folder) if "run" in name)}


def main(place: Path) -> dict[str, Any]:
    """Every scene in a folder of its own."""
    torch.set_num_threads(1)
    catalog.find("model", MODEL)
    text = LINES * 20
    found: dict[str, Any] = {}
    for scene in (two_signals, two_trainers, no_memory):
        folder = place / scene.__name__
        folder.mkdir()
        (folder / "t.txt").write_text(text)
        found[scene.__name__] = scene(folder, folder / "log") | {"log": (folder / "log").read_text()}
    (place / "t.txt").write_text(text)
    assert ended(child(place, MODEL, "whole", place / "log", *STEPS)) == 0
    return found | {"expected": weights(place / "whole")}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))

"""Save checkpoints in processes that die before their n-th call on a file: python every_call.py FOLDER.

It prints one JSON object: how many calls each scene has, and the step that was found after each death.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from run_folders import save

from nextword.store.checkpoints import find_last

CALLS = ("open", "write", "fsync", "mkdir", "rename", "replace", "unlink", "rmdir")


def dying(work: Callable[[], None], number: int) -> bool:
    """Do it in a process that kills itself before so many calls; whether it died."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    left = [number]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return wrapped

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))
    work()
    os._exit(0)


def scene(folder: Path, before: list[int], step: int) -> dict[str, Any]:
    """After each death: which checkpoint is found, whether it is whole, and that the next save goes well."""
    found: list[int | None] = []
    for number in range(10_000):
        run = folder / f"r{number}"
        for each in before:
            save(run, each)
        died = dying(lambda run=run: save(run, step), number)
        last = find_last(run)
        assert last.damaged == [], last.damaged
        whole = last.checkpoint
        found.append(None if whole is None else whole.folder.read_json("numbers.json")["step"])
        save(run, step + 10)
        assert find_last(run).checkpoint.step == step + 10
        assert not [name for name in os.listdir(run / "checkpoint") if ".tmp-" in name]
        shutil.rmtree(run)
        if not died:
            break
    return {"calls": len(found) - 1, "found": found}


if __name__ == "__main__":
    place = Path(sys.argv[1])
    scenes = {"first": ([], 10), "second": ([10], 20), "third": ([10, 20], 30)}
    print(json.dumps({name: scene(place, before, step) for name, (before, step) in scenes.items()}))

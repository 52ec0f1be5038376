"""A peer in a process of its own, which waits between its turns: ``python -m support.worker PEER TASK``.

Each line of standard input is a number of steps; the answer is a line of JSON with wall and CPU seconds, and
the type of the products.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peers.task import Task

# What `nextword.system.allocator` sets for our own program, as glibc reads it from the environment.
SAME_ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str((1 << 31) - 1),
    "MALLOC_TOP_PAD_": str(256 << 20),
}
HERE = Path(__file__).resolve().parents[1]


def cpu() -> float:
    """Seconds of this process, all threads, and of its children."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def serve(peer: str, task_json: str) -> None:
    """Answer until the input ends."""
    if peer == "ours":  # as the command line program does it, before torch is loaded
        from nextword.system.before_torch import make_ready

        make_ready(print)
    from peers.task import read

    loop = importlib.import_module(f"peers.{peer}").Peer(read(task_json))
    for line in sys.stdin:
        wall, used = time.perf_counter(), cpu()
        losses = [loop.step() for _ in range(int(line))]
        answer = {"wall": time.perf_counter() - wall, "cpu": cpu() - used, "losses": losses}
        print(json.dumps(answer | {"type": loop.type if peer == "ours" else "fp32"}), flush=True)


class Worker:
    """The driver's end. ``allocator``: the peer gets the setting that our program makes for itself."""

    def __init__(self, peer: str, task: Task, threads: int = 0, allocator: bool = False) -> None:
        command = [sys.executable, "-m", "support.worker", peer, task.to_json()]
        environment = {**os.environ, **({"OMP_NUM_THREADS": str(threads)} if threads else {})}
        environment |= SAME_ALLOCATOR if allocator else {}
        self.peer = peer
        self.process = subprocess.Popen(
            command, cwd=HERE, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, steps: int) -> dict:
        """Let it do so many steps now; nothing else of ours runs meanwhile."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(steps, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.peer} ended; its message is above")
        return json.loads(line)

    def close(self) -> None:
        """It ends with its input."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


if __name__ == "__main__":
    serve(*sys.argv[1:])

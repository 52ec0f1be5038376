"""Turns of a process: each line of its input is "VERB NUMBER", each answer a line of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]


def serve(peer) -> None:
    """Answer with the words done and the wall and CPU seconds of all threads, until the input ends."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    print("{}", flush=True)
    for line in sys.stdin:
        verb, number = line.split()
        wall, cpu = time.perf_counter(), time.process_time()
        words = getattr(peer, verb)(int(number))
        answer = {"words": words, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps(answer), flush=True)


class Turns:
    """The driver's end: one process."""

    def __init__(self, python: str, module: str, *arguments: str, environment: dict[str, str] | None = None):
        self.process = subprocess.Popen(
            [python, "-m", module, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, cwd=HERE, env={**os.environ, **(environment or {})},
        )  # fmt: skip
        self._answer()

    def run(self, verb: str, number: int) -> dict[str, float]:
        """Give one turn."""
        self.process.stdin.write(f"{verb} {number}\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, float]:
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise SystemExit(f"{self.process.args[:3]} ended with code {self.process.wait()}")

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait()

"""Run nextword as a program of its own, with one thread, and count its CPU seconds."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path


def nextword(*arguments, module="nextword", given=None):
    """Run the program with one thread; return what it prints and its CPU seconds."""
    here = str(Path(__file__).parent.parent)
    path = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)], capture_output=True, text=True, input=given,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    print(*done.stderr.strip().split("\n")[-8:], sep="\n", file=sys.stderr, flush=True)
    return done.stdout, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

"""Our own training with some CPU seconds: here the clock is the CPU time of this process, as of the peers.

    python -m peers.our_minutes auto|lstm tag|classify FOLDER SECONDS

FOLDER has train, dev and test as .tsv or .conll and gets the run; the CPU seconds are printed as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch  # noqa: F401 - imports are not in the seconds of any program

import nextword

if __name__ == "__main__":
    kind, task, place, seconds = sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])
    time.monotonic = time.perf_counter = time.process_time
    began = time.process_time()
    ending = "conll" if task == "tag" else "tsv"
    nextword.train(
        place / f"train.{ending}", task=task, valid=place / f"dev.{ending}", out=place / "run",
        model=None if kind == "auto" else kind, minutes=seconds / 60,
    )  # fmt: skip
    print(json.dumps({"cpu": time.process_time() - began}))

"""A peer that trains for some minutes and is then asked what the test text costs.

``python -m support.minutes PEER TASK MINUTES TEST.npy`` prints one line of JSON. Its schedule, where it has
one, is told how many steps will fit; importing and reading the text is not counted.
"""

from __future__ import annotations

import importlib
import json
import sys
import time

import numpy as np

WARM, MEASURED = 3, 20


def main(peer: str, task_json: str, minutes: str, test: str) -> None:
    """Train, then measure."""
    from peers.task import read

    task = read(task_json)
    loop = importlib.import_module(f"peers.{peer}").Peer(task)
    began, limit, steps, loss = time.perf_counter(), 60 * float(minutes), 0, float("nan")
    paced = 0.0
    while (now := time.perf_counter() - began) < limit:
        if steps == WARM:
            paced = now
        if steps == WARM + MEASURED:
            task.steps = steps + int((limit - now) * MEASURED / (now - paced))
        loss = loop.step()
        steps += 1
    seconds = time.perf_counter() - began
    nats, tokens = loop.nats(np.load(test))
    result = {
        "nats": nats,
        "tokens": tokens,
        "seconds": seconds,
        "note": f"{steps} steps, last loss {loss:.3f}",
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

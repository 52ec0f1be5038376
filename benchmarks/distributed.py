"""Two processes of one thread against one process of two: tokens a second of a training, in turns.

    python benchmarks/distributed.py [--rounds 5] [--steps 60] [--model lstm] [--hidden 256] [--only ddp]

Every turn is a whole training of its own process or processes (DDP or FSDP2 over gloo on this machine), with
the same batches. A figure is the median over the turns of the tokens a second that the trainer itself reports
in metrics.jsonl (without start, saving and measuring); beside it the CPU seconds of all processes together.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from support import texts

WAYS = {
    "1 process x 1 thread": (1, 1, "auto"),
    "1 process x 2 threads": (1, 2, "auto"),
    "2 processes x 1 thread, ddp": (2, 1, "ddp"),
    "2 processes x 1 thread, fsdp": (2, 1, "fsdp"),
}


def turn(work: Path, args: argparse.Namespace, way: tuple[int, int, str]) -> tuple[float, float, float]:
    """One training: tokens a second, CPU seconds of all processes, and the last loss."""
    processes, threads, parallel = way
    sets = {
        "model.hidden": args.hidden, "model.layers": args.layers, "train.batch": args.batch,
        "train.steps": args.steps, "train.threads": threads, "train.parallel": parallel, "data.hold_out": 0,
        "train.log_every": 1, "train.save_every": 10**9, "text.max_vocab": args.vocab,
    }  # fmt: skip
    if args.model != "transformer":
        sets["train.length"] = args.length
    else:
        sets["model.context"] = args.length
    launcher = [] if processes == 1 else [
        "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)
    ]  # fmt: skip
    command = [
        sys.executable, *launcher, "-m", "nextword", "train", str(args.text), "--model", args.model,
        "--tokenizer", "words", "--out", str(work / "run"), "--overwrite",
        *(word for key, value in sets.items() for word in ("--set", f"{key}={value}")),
    ]  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)}
    )
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = (work / "run" / "metrics.jsonl").read_text().split("\n")
    rows = [row for line in lines if line and "loss" in (row := json.loads(line))]
    half = rows[len(rows) // 2 :]  # what is done once is done by then
    speed = (half[-1]["tokens"] - half[0]["tokens"]) / (half[-1]["seconds"] - half[0]["seconds"])
    return speed, seconds, rows[-1]["loss"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--model", default="lstm", choices=["lstm", "gru", "rnn", "mingru", "transformer"])
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--vocab", type=int, default=8000)
    parser.add_argument("--text", default="", help="a text file (default: tiny Shakespeare)")
    parser.add_argument("--only", default="", help="part of the name of a way")
    args = parser.parse_args()
    args.text = args.text or texts.corpus_folder("tinyshakespeare") / "input.txt"
    ways = {name: way for name, way in WAYS.items() if args.only in name}
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as name:
        for number in range(args.rounds):
            for way in list(ways) if number % 2 == 0 else reversed(ways):
                found[way].append(turn(Path(name), args, ways[way]))
    print(
        f"{args.model} {args.layers}x{args.hidden}, B {args.batch}, T {args.length}, {args.rounds} turns of "
        f"{args.steps} steps, {os.cpu_count()} processors"
    )
    for way, turns in found.items():
        speeds = sorted(speed for speed, _, _ in turns)
        cpu = statistics.median(seconds for _, seconds, _ in turns)
        print(
            f"{way:<30} {statistics.median(speeds):>9,.0f} tokens/s ({speeds[0]:,.0f} to {speeds[-1]:,.0f}), "
            f"{cpu:.1f} CPU seconds in all, last loss {turns[-1][2]:.4f}"
        )


if __name__ == "__main__":
    main()

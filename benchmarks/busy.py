"""Every verb on a quiet machine, beside one busy loop, and beside two for each processor: ours against ours.

    python benchmarks/busy.py [--only train-gru,eval-lstm,...] [--rounds 3] [--before FOLDER]

Each verb is a command of its own, as a user starts it, with a small run on tiny Shakespeare. The quiet and
the busy ones take turns; a figure is the median wall time of the rounds, and a ratio is that over the quiet
time. --before: a checkout of an earlier version, which takes its turns, too, with the same runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import texts

LEARNED, MEASURED = 500_000, 600_000  # bytes
FAMILIES = ("gru", "lstm", "transformer")
SMALL = ["--tokenizer", "bpe", "--set", "train.steps=60", "--set", "data.hold_out=0"]


def verbs(text: Path) -> dict[str, list[str]]:
    """The commands, by name."""
    found = {
        f"train-{name}": ["train", str(text / "learned.txt"), "--model", name, *SMALL] for name in FAMILIES
    }
    for name in (*FAMILIES, "ngram"):
        run = str(text / name)
        found[f"eval-{name}"] = ["eval", run, str(text / "measured.txt")]
        found[f"generate-{name}"] = [
            "generate",
            run,
            "--prompt",
            "The king",
            "--max-tokens",
            "600",
            "--seed",
            "1",
        ]
    return found


@contextmanager
def beside(loops: int) -> Iterator[None]:
    """So many processes that do nothing, as fast as they can."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def seconds(arguments: list[str], folder: Path, source: str | None) -> float:
    """Wall time of one command; ``source``: the checkout it comes from."""
    environment = dict(os.environ) if source is None else {**os.environ, "PYTHONPATH": source}
    if arguments[0] == "train":
        arguments = [*arguments, "--out", str(folder / "new"), "--overwrite"]
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "nextword", *arguments],
        cwd=folder,
        env=environment,
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - began


def main() -> None:
    """One line a verb and version."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", default=None, metavar="FOLDER")
    args = parser.parse_args()
    loops = (0, 1, 2 * (os.cpu_count() or 1))
    sources = {"now": None} | ({"before": os.path.abspath(args.before)} if args.before else {})
    whole = (texts.corpus_folder("tinyshakespeare") / "input.txt").read_bytes()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "learned.txt").write_bytes(whole[:LEARNED])
        (folder / "measured.txt").write_bytes(whole[-MEASURED:])
        for family in (*FAMILIES, "ngram"):
            small = SMALL if family != "ngram" else ["--tokenizer", "bpe"]
            command = ["train", "learned.txt", "--model", family, *small, "--out", family]
            subprocess.run(
                [sys.executable, "-m", "nextword", *command], cwd=folder, check=True, capture_output=True
            )
        print(f"{'verb':22s} {'version':8s} " + "".join(f"{f'{n} loops':>20s}" for n in loops))
        for verb, command in verbs(folder).items():
            if args.only and verb not in args.only.split(","):
                continue
            took: dict[tuple[str, int], list[float]] = {}
            for _ in range(args.rounds):
                for many in loops:
                    with beside(many):
                        for version, source in sources.items():
                            took.setdefault((version, many), []).append(seconds(command, folder, source))
            for version in sources:
                medians = [statistics.median(took[version, many]) for many in loops]
                cells = "".join(f"{each:12.2f} s {each / medians[0]:5.2f}x" for each in medians)
                print(f"{verb:22s} {version:8s} {cells}", flush=True)


if __name__ == "__main__":
    main()

"""Commands of two checkouts by turns: whether a change of the tree made anything slower.

    python benchmarks/checkouts.py --before CHECKOUT [--text FILE] [--rounds 5]

Each command runs in a process of its own, with one thread; figures are medians of its CPU time, and the
ratio is the old one's over the new one's (above 1: faster now).
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
SETS = ("train.steps=60", "train.precision=fp32", "model.hidden=200")
LSTM = ("--model", "lstm", "--tokenizer", "words", *(word for each in SETS for word in ("--set", each)))
COMMANDS = {
    "train ngram": ("train", "{text}", "--model", "ngram", "--out", "{runs}/{round}-ngram"),
    "train lstm": ("train", "{text}", *LSTM, "--out", "{runs}/{round}-lstm"),
    "eval ngram": ("eval", "{runs}/{round}-ngram", "{text}"),
    "eval lstm": ("eval", "{runs}/{round}-lstm", "{part}"),
    "generate ngram": ("generate", "{runs}/{round}-ngram", "--prompt", "the", "--max-tokens", "2000"),
    "generate lstm": ("generate", "{runs}/{round}-lstm", "--prompt", "the", "--max-tokens", "300"),
}


def seconds(checkout: Path, words: list[str], folder: Path) -> float:
    """Run one command; return its CPU time."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout),
        "NEXTWORD_CACHE": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "nextword", *words], cwd=folder, env=environment, check=True,
        capture_output=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a line per command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--text", type=Path, default=None)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    sides = {"before": args.before.resolve(), "now": HERE}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side in sides:
            (folder / side).mkdir()
        text = args.text.resolve() if args.text else folder / "text.txt"
        if args.text is None:
            text.write_text("".join(path.read_text() for path in sorted((HERE / "docs").glob("*.md"))) * 10)
        part = folder / "part.txt"
        part.write_bytes(text.read_bytes()[:200_000])
        for what, words in COMMANDS.items():
            took: dict[str, list[float]] = {side: [] for side in sides}
            for turn in range(args.rounds):
                for side, checkout in sides.items():
                    places = {"text": text, "part": part, "runs": folder / side, "round": turn}
                    filled = [word.format(**places) for word in words]
                    took[side].append(seconds(checkout, filled, folder / side))
            old, new = (statistics.median(took[side]) for side in sides)
            print(f"{what:15} before {old:6.2f} s, now {new:6.2f} s, ratio {old / new:.2f}", flush=True)


if __name__ == "__main__":
    main()

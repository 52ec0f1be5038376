"""What a command costs before it does anything: CPU seconds of commands on very little text.

    python benchmarks/start.py [--rounds 5]

Medians of the rounds, all threads and child processes counted; the last column names the heavy packages that
the command has loaded. Bare Python and `import torch` stand beside them.
"""

from __future__ import annotations

import argparse
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from support import texts

HEAVY = ("torch", "numba", "tokenizers", "matplotlib", "rich")
SMALL = ["--set", "train.steps=20", "--set", "data.hold_out=0", "--tokenizer", "bpe"]


def cpu(command: list[str], folder: Path) -> float:
    """CPU seconds of one process and what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def loaded(arguments: list[str], folder: Path) -> str:
    """Heavy packages that a command imports."""
    command = [sys.executable, "-X", "importtime", "-m", "nextword", *arguments]
    told = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stderr
    there = set(re.findall(r"\| +(\w+)$", told, re.MULTILINE))
    return ", ".join(name for name in HEAVY if name in there)


def main() -> None:
    """One line a command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    whole = (texts.corpus_folder("tinyshakespeare") / "input.txt").read_bytes()
    commands = {
        "bare Python": ["-c", "pass"],
        "import torch": ["-c", "import torch"],
        "--help": ["-m", "nextword", "--help"],
        "eval, 5-gram": ["-m", "nextword", "eval", "ngram", "measured.txt"],
        "eval, LSTM": ["-m", "nextword", "eval", "lstm", "measured.txt"],
        "generate, LSTM": ["-m", "nextword", "generate", "lstm", "--max-tokens", "20"],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "learned.txt").write_bytes(whole[:200_000])
        (folder / "measured.txt").write_bytes(whole[-20_000:])
        for family in ("ngram", "lstm"):
            more = SMALL if family == "lstm" else ["--tokenizer", "bpe"]
            command = ["-m", "nextword", "train", "learned.txt", "--model", family, *more, "--out", family]
            subprocess.run([sys.executable, *command], cwd=folder, check=True, capture_output=True)
        for title, command in commands.items():
            found = [cpu([sys.executable, *command], folder) for _ in range(args.rounds)]
            heavy = loaded(command[2:], folder) if command[0] == "-m" else ""
            print(f"{title:16s} {statistics.median(found):6.2f} CPU s  {heavy}", flush=True)


if __name__ == "__main__":
    main()

"""Train every family with two checkouts and compare what they write, bit by bit.

For changes that must not change a number: folders moved, classes renamed, loops rearranged.

    python benchmarks/same_numbers.py --before CHECKOUT [--text FILE] [--only lstm,ngram]

Both train on this machine, in float32 with one thread and a fixed number of steps, one after the other.
Weights, arrays, tokenizer and settings must be equal. A network is then trained by the first checkout once
more, killed after a checkpoint, and resumed by both: these results must be equal, too. A line is printed per
family, and the exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
COUNTS = ("ngram", "ngram-witten-bell", "ngram-katz", "unbounded")
NETWORKS = ("window", "rnn", "lstm", "gru", "gru-torch", "mingru", "transformer")
SETTINGS = (
    "train.steps=300", "train.save_every=20", "train.precision=fp32", "train.threads=1", "train.batch=8",
    "train.length=16",
)  # fmt: skip
KEPT = (".safetensors", ".npy", "tokenizer.json", "config.toml")


def command(
    checkout: Path, family: str, text: Path, out: Path, *more: str
) -> tuple[list[str], dict[str, str]]:
    """One training by one checkout: its command line and environment."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "NEXTWORD_CACHE": str(out.parent / "cache")}
    sets = SETTINGS if family in NETWORKS else ()
    words = [
        sys.executable,
        "-m",
        "nextword",
        "train",
        str(text),
        "--model",
        family,
        "--out",
        str(out),
        *more,
    ]
    return words + [word for each in sets for word in ("--set", each)], environment


def train(checkout: Path, *asked: Any) -> None:
    """Train to the end."""
    words, environment = command(checkout, *asked)
    subprocess.run(words, env=environment, cwd=checkout, check=True, capture_output=True)


def interrupt(checkout: Path, family: str, text: Path, out: Path) -> None:
    """Train until there is a checkpoint, and kill the process."""
    words, environment = command(checkout, family, text, out)
    with subprocess.Popen(words, env=environment, cwd=checkout, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not (out / "checkpoint" / "LAST").exists():
            time.sleep(0.01)
        process.kill()


def digests(run: Path) -> dict[str, str]:
    """SHA-256 of every file whose bytes must not change."""
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name.endswith(KEPT)
    }


def main() -> int:
    """Compare family after family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the commit to compare with")
    parser.add_argument("--text", type=Path, default=HERE / "README.md")
    parser.add_argument("--only", default=",".join(COUNTS + NETWORKS))
    asked = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for family in asked.only.split(","):
            sides = (("before", asked.before.resolve()), ("after", HERE))
            text, found = asked.text.resolve(), []
            for name, checkout in sides:
                train(checkout, family, text, Path(folder) / name / family)
                found.append(digests(Path(folder) / name / family))
            if family in NETWORKS:
                begun = Path(folder) / "begun" / family
                interrupt(sides[0][1], family, text, begun)
                for (name, checkout), digest in zip(sides, found, strict=True):
                    resumed = Path(folder) / name / f"{family}-resumed"
                    shutil.copytree(begun, resumed)
                    train(checkout, family, text, resumed, "--resume")
                    digest |= {f"resumed {file}": value for file, value in digests(resumed).items()}
            before, after = found
            different = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
            wrong += bool(different)
            verdict = "equal" if not different else f"DIFFERENT: {', '.join(different)}"
            print(f"{family:20} {verdict} ({len(before)} files)", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Train every family with two checkouts and compare what they write, bit by bit.

For changes that must not change a number: folders moved, classes renamed, loops rearranged.

    python benchmarks/same_numbers.py --before CHECKOUT [--text FILE] [--only lstm,ngram,tag:lstm]

Both train on this machine, in float32 with one thread and a fixed number of steps, one after the other.
Weights, arrays and tokenizer must be equal, and so must every setting that both know. A network is then
trained by the first checkout once more, killed after a checkpoint, and resumed by both: these results must be
equal, too. A line is printed per family, and the exit code is 1 if anything differs.
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
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
COUNTS = ("ngram", "ngram-witten-bell", "ngram-katz", "unbounded")
NETWORKS = ("window", "rnn", "lstm", "gru", "gru-torch", "mingru", "transformer")
SETTINGS = (
    "train.steps=300", "train.save_every=20", "train.precision=fp32", "train.threads=1", "train.batch=8",
    "train.length=16",
)  # fmt: skip
LABELLED = ("tag:lstm", "tag:window", "classify:gru", "classify:linear")  # examples are made from the text
KEPT = (".safetensors", ".npy", "tokenizer.json", "config.toml")
Found = dict[str, str]  # the digest of a file, or the value of a setting


def command(
    checkout: Path, family: str, text: Path, out: Path, *more: str
) -> tuple[list[str], dict[str, str]]:
    """One training by one checkout: its command line and environment."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "NEXTWORD_CACHE": str(out.parent / "cache")}
    task, _, model = family.rpartition(":")
    sets = SETTINGS if model in NETWORKS else ()
    if task:
        sets = tuple(each for each in sets if not each.startswith("train.length"))
        text = examples(task, text, out.parent)
    words = [
        sys.executable,
        "-m",
        "nextword",
        "train",
        str(text),
        *(("--task", task) if task else ()),
        "--model",
        model,
        "--out",
        str(out),
        *more,
    ]
    return words + [word for each in sets for word in ("--set", each)], environment


def examples(task: str, text: Path, folder: Path) -> Path:
    """Write labelled examples: a word's tag is its last letter, a line's class whether it has a comma."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [line.split() for line in text.read_text().split("\n") if len(line.split()) > 3]
    if task == "tag":
        sentences = ["".join(f"{word}\t{word[-1].upper()}\n" for word in words) for words in lines]
        path, written = folder / "tags.txt", "\n".join(sentences)
    else:
        rows = [f"{'yes' if ',' in ' '.join(words) else 'no'}\t{' '.join(words)}\n" for words in lines]
        path, written = folder / "classes.tsv", "".join(rows)
    path.write_text(written)
    return path


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


def digests(run: Path) -> Found:
    """Return the SHA-256 of every file whose bytes must not change, and the settings one by one."""
    found = {}
    for path in sorted(run.rglob("*")):
        if path.name == "config.toml":
            found |= {f"setting {key}": str(value) for key, value in _settings(path).items()}
        elif path.is_file() and path.name.endswith(KEPT):
            found[str(path.relative_to(run))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _settings(path: Path) -> dict[str, Any]:
    tree = tomllib.loads(path.read_text())
    groups = {key: each for key, each in tree.items() if isinstance(each, dict)}
    flat = {f"{group}.{name}": value for group, each in groups.items() for name, value in each.items()}
    return flat | {key: each for key, each in tree.items() if key not in groups}


def differences(before: Found, after: Found) -> list[str]:
    """Return what differs; a setting that only one of them knows is none."""
    names = {*before, *after} - {name for name in before.keys() ^ after.keys() if "setting " in name}
    return sorted(name for name in names if before.get(name) != after.get(name))


def main() -> int:
    """Compare family after family."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the commit to compare with")
    parser.add_argument("--text", type=Path, default=HERE / "README.md")
    parser.add_argument("--only", default=",".join(COUNTS + NETWORKS + LABELLED))
    asked = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for family in asked.only.split(","):
            sides = (("before", asked.before.resolve()), ("after", HERE))
            text, found = asked.text.resolve(), []
            for name, checkout in sides:
                train(checkout, family, text, Path(folder) / name / family.replace(":", "-"))
                found.append(digests(Path(folder) / name / family.replace(":", "-")))
            if family.rpartition(":")[2] in NETWORKS:
                begun = Path(folder) / "begun" / family.replace(":", "-")
                interrupt(sides[0][1], family, text, begun)
                for (name, checkout), digest in zip(sides, found, strict=True):
                    resumed = Path(folder) / name / f"{family}-resumed".replace(":", "-")
                    shutil.copytree(begun, resumed)
                    train(checkout, family, text, resumed, "--resume")
                    digest |= {f"resumed {file}": value for file, value in digests(resumed).items()}
            before, after = found
            different = differences(before, after)
            wrong += bool(different)
            verdict = "equal" if not different else f"DIFFERENT: {', '.join(different)}"
            print(f"{family:20} {verdict} ({len(before)} files and settings)", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Kill a training again and again, at any moment, and go on: python killing.py FOLDER KILLS SEED MODEL.

MODEL is a language model, or a model of another task, as in tag:lstm.
Each training is a child made by fork, so that torch is loaded once. It prints one JSON object: the number of
kills, of trainings that ended, and the hashes of their weights, with that of a training nobody disturbed.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
from pathlib import Path

import safetensors.torch  # noqa: F401 - loaded before the first fork
import torch
from labelled_texts import labelled_texts, tagged_sentences
from small_texts import LINES

from nextword.api import train  # noqa: F401
from nextword.cli.main import run as run_command
from nextword.core import catalog
from nextword.training import job, loop  # noqa: F401

SETTINGS = {
    "model.hidden": 16, "model.layers": 1, "train.steps": 30, "train.save_every": 2, "train.batch": 4,
    "train.threads": 1, "train.valid_every": 5, "train.log_every": 1,
}  # fmt: skip
LANGUAGE = {"train.length": 8}
DATA = {
    "": ("t.txt", lambda: LINES * 20), "tag": ("t.conll", tagged_sentences),
    "classify": ("t.tsv", lambda: labelled_texts(160)),
}  # fmt: skip


def child(folder: Path, model: str, name: str, log: Path, *more: str, limit: int = 0) -> int:
    """Start a training in a process of its own; goes on if its folder is there, as a user would.

    ``more``: further words of the command. ``limit``: bytes of memory on top of what it has.
    """
    process = os.fork()
    if process:
        return process
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    task, _, family = model.rpartition(":")
    chosen = SETTINGS | ({} if task else LANGUAGE)
    sets = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
    if model == "transformer":
        sets += ["--set", "model.context=8", "--set", "model.heads=2"]
    resume = ["--resume"] if os.path.isdir(name) else []
    about = ["--task", task] if task else ["--tokenizer", "characters"]
    command = ["train", DATA[task][0], "--model", family, *about, "--out", name, *sets, *resume]
    if limit:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + limit, resource.RLIM_INFINITY))
    os._exit(run_command([*command, *more]))


def weights(run: Path) -> str:
    """The hash of the weights and of all rows but their time fields."""
    digest = hashlib.sha256((run / "model.safetensors").read_bytes())
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        digest.update(
            json.dumps({k: v for k, v in row.items() if k not in ("seconds", "tokens_per_second")}).encode()
        )
    return digest.hexdigest()


def ended(process: int) -> int:
    """Wait for a child; its exit code must be 0."""
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def main(folder: Path, kills: int, seed: int, model: str) -> dict[str, object]:
    """Kill and go on, so many times."""
    torch.set_num_threads(1)
    task, _, family = model.rpartition(":")
    catalog.find(catalog.find("task", task).families if task else "model", family)
    file, text = DATA[task]
    (folder / file).write_text(text())
    log, chance = folder / "log", random.Random(seed)
    began = time.monotonic()
    assert ended(child(folder, model, "whole", log)) == 0, log.read_text()
    took, done, hashes = time.monotonic() - began, 0, []
    resumed = 0
    while True:
        process = child(folder, model, "run", log)
        if done < kills:
            time.sleep(chance.random() * took)
            os.kill(process, signal.SIGKILL)
        code = ended(process)
        if code == -signal.SIGKILL:
            done += 1
            resumed += (folder / "run" / "checkpoint" / "LAST").exists()
            continue
        assert code == 0, log.read_text()[-2000:]
        hashes.append(weights(folder / "run"))
        shutil.rmtree(folder / "run")
        if done >= kills:
            break
    rest = sorted(name for name in os.listdir(folder) if name.startswith(".run"))
    return {
        "kills": done, "with_checkpoint": resumed, "trainings": len(hashes), "rest": rest,
        "expected": weights(folder / "whole"), "hashes": sorted(set(hashes)),
    }  # fmt: skip


if __name__ == "__main__":
    folder, kills, seed, model = sys.argv[1:]
    print(json.dumps(main(Path(folder), int(kills), int(seed), model)))

"""Trainings of several processes, made by fork so that torch is loaded once: python ranks.py.

A job: ``world`` ranks run ``arguments`` (of nextword) in ``folder``; ``only``: which of them come at all;
``kill``: {rank or "all": signal}, sent when a checkpoint of a step >= ``at`` stands in ``run``; ``folders``:
of single ranks; ``slurm``: it is started as by srun. Each line of standard input is a job; the line printed
for it tells what every rank wrote and how it ended.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path

os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"  # as the program does before it loads torch

import safetensors.torch  # noqa: F401 - loaded before the first fork
import torch
import torch._dynamo
import torch.distributed.fsdp

from nextword.api import train  # noqa: F401
from nextword.cli.main import main as run_command
from nextword.core import catalog
from nextword.training import loop  # noqa: F401

LONGEST = 120.0  # seconds of a job


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start(job: dict, rank: int, port: int, log: Path) -> int:
    """One rank in a process of its own."""
    process = os.fork()
    if process:
        return process
    os.setsid()
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{log}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    names = {"RANK": rank, "WORLD_SIZE": job["world"], "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": job["world"]}
    if job.get("slurm"):
        names = {"SLURM_PROCID": rank, "SLURM_NTASKS": job["world"], "SLURM_LOCALID": rank}
    names |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in names.items()}
    os.chdir(job.get("folders", {}).get(str(rank), job["folder"]))
    try:
        run_command(job["arguments"])
    except SystemExit as end:
        os._exit(end.code)
    finally:
        os._exit(99)


def is_saved(job: dict) -> bool:
    """Whether the checkpoint that the job waits for is there."""
    try:
        name = Path(job["folder"], job["run"], "checkpoint", "LAST").read_text()
    except OSError:
        return False
    return int(name.split("-")[1]) >= job["at"]


def run(job: dict, log: Path) -> dict:
    """All ranks of a job, until each has ended."""
    port, began = free_port(), time.monotonic()
    ranks = job.get("only", list(range(job["world"])))
    living = {rank: start(job, rank, port, Path(f"{log}-{rank}")) for rank in ranks}
    codes: dict[int, int] = {}
    waits = bool(job.get("kill"))
    while len(codes) < len(living):
        if waits and is_saved(job):
            waits = False
            for who, name in job["kill"].items():
                for rank in living if who == "all" else [int(who)]:
                    os.kill(living[rank], getattr(signal, name))
        left = {str(rank) for rank in set(living) - set(codes)}
        if time.monotonic() - began > LONGEST or (not waits and left <= set(job.get("kill", {}))):
            for rank in set(living) - set(codes):  # one that was stopped stays so
                os.kill(living[rank], signal.SIGKILL)
        for rank in set(living) - set(codes):
            process, status = os.waitpid(living[rank], os.WNOHANG)
            if process:
                codes[rank] = os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    texts = {rank: [Path(f"{log}-{rank}.{name}").read_text() for name in ("out", "err")] for rank in living}
    return {"codes": codes, "texts": texts, "seconds": round(time.monotonic() - began, 2)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for model in ("lstm", "transformer"):
        catalog.find("model", model)
    for number, line in enumerate(sys.stdin):
        each = json.loads(line)
        print(json.dumps(run(each, Path(each["folder"], f"log-{number}"))), flush=True)

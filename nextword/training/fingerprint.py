"""What a training depends on besides its settings: its examples, and the machine."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import torch

from nextword.core.task import Prepared
from nextword.models.network import device_of
from nextword.system import processor, threads
from nextword.training.job import Job

EMPTY = hashlib.sha256().hexdigest()  # of no held-out examples


def describe(job: Job, prepared: Prepared) -> dict[str, Any]:
    """Return hashes of what is learned from and measured; threads, device, torch, type of products."""
    return {
        "ids": prepared.digest(),
        "held_out": EMPTY if job.held_out is None else job.held_out.digest(),
        "threads": job.settings.threads or threads.allowed(),
        "device": str(device_of(job.network)),
        "torch": torch.__version__,
        "precision": job.settings.precision,
        "bf16": processor.find_out().bf16,
        "instructions": os.environ.get(processor.LIMIT, "all"),
        "ranks": job.ranks.world,
    }

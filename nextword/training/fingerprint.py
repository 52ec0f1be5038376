"""What a training depends on besides its settings: the text as ids, and the machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from nextword.data.encode import Text
from nextword.system import processor, threads
from nextword.training.loop import Job

_PIECE = 1 << 22  # ids hashed at once


def describe(job: Job, text: Text) -> dict[str, Any]:
    """Hashes of the ids that are learned from and measured; threads, device, torch, type of products."""
    rows = [] if job.held_out is None else job.held_out.rows
    return {
        "ids": hash_ids([text.ids, *([] if text.documents is None else [text.documents])]),
        "held_out": hash_ids(rows),
        "threads": job.settings.threads or threads.allowed(),
        "device": str(job.network.device),
        "torch": torch.__version__,
        "precision": job.settings.precision,
        "bf16": processor.find_out().bf16,
        "instructions": os.environ.get(processor.LIMIT, "all"),
        "ranks": job.ranks.world,
    }


def hash_ids(arrays: Iterable[Any]) -> str:
    """SHA-256 of some arrays of ids, piece by piece."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{len(array)} {array.dtype.str};".encode())
        for at in range(0, len(array), _PIECE):
            digest.update(np.ascontiguousarray(array[at : at + _PIECE]).view(np.uint8).data)
    return digest.hexdigest()

"""The checkpoint folder of an unfinished training run: its name, and how to list it."""

from __future__ import annotations

import os
import re
from pathlib import Path

FOLDER = "checkpoint"  # in the run folder
NAME = re.compile(r"ckpt-(\d{6,12})-([0-9a-f]{8})")  # step and training run


def checkpoints_in(run: Path) -> list[Path]:
    """Return the checkpoints of a run folder, sorted by step; they are not verified."""
    try:
        names = os.listdir(run / FOLDER)
    except OSError:
        return []
    found = [(int(match[1]), name) for name in names if (match := NAME.fullmatch(name))]
    return [run / FOLDER / name for _, name in sorted(found)]

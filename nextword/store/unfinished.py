"""Where a training that has not ended keeps what it needs to go on: names, and how they are found."""

from __future__ import annotations

import os
import re
from pathlib import Path

FOLDER = "checkpoint"  # of a run folder
NAME = re.compile(r"ckpt-(\d{6,12})-([0-9a-f]{8})")  # step and training


def checkpoints_in(run: Path) -> list[Path]:
    """The checkpoints of a run folder that were put in place, by step; whether they are whole is not said."""
    try:
        names = os.listdir(run / FOLDER)
    except OSError:
        return []
    found = [(int(match[1]), name) for name in names if (match := NAME.fullmatch(name))]
    return [run / FOLDER / name for _, name in sorted(found)]

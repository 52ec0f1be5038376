"""The user's cache folder: what can be made again, and costs only time when it is gone."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """$NEXTWORD_CACHE, or the user's cache folder."""
    named = os.environ.get("NEXTWORD_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "nextword"

"""The user's cache folder: everything in it can be recomputed."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return $NEXTWORD_CACHE, or the user's cache folder."""
    named = os.environ.get("NEXTWORD_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "nextword"

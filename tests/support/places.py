"""Where things are, for tests in any folder: the repository, and the scripts that tests start."""

from __future__ import annotations

from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
ROOT = SUPPORT.parents[1]

"""Durations as people say them: ``about 20 s``, ``about 4 minutes``, ``about 3.5 hours``."""

from __future__ import annotations

import math

LONG = 20.0  # seconds: whatever takes longer says so beforehand


def about(seconds: float) -> str:
    """Round seconds to what is worth saying of an estimate."""
    if not math.isfinite(seconds):
        return "an unknown time"
    if seconds < 50:
        return f"about {max(5, round(seconds / 5) * 5)} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"about {minutes} minute{'' if minutes == 1 else 's'}"
    hours = seconds / 3600
    return f"about {hours:.2g} hours" if hours < 48 else f"about {round(hours / 24):,} days"

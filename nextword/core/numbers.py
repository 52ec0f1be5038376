"""Numbers as people read them: with commas up to a billion, in scientific notation beyond."""

from __future__ import annotations

import math

_LARGE = 1e9  # beyond it nobody reads the digits


def show_number(value: float, digits: int = 2) -> str:
    """Format a number with so many decimals: ``1,090.16``, ``6.6e+18``, ``infinite``."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite" if value > 0 else "-infinite"
    return f"{value:,.{digits}f}" if abs(value) < _LARGE else f"{value:.1e}"

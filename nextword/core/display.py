"""Values as people read them: numbers, sizes, durations, and text that is safe to show.

A corpus may contain terminal escape codes and bidirectional overrides; they must reach no terminal or page.
"""

from __future__ import annotations

import html
import math
import re

LONG = 20.0  # seconds: whatever takes longer says so beforehand
_LARGE = 1e9  # beyond it nobody reads the digits
# Controls other than tab and newline, line separators, bidirectional marks and overrides, lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def show_number(value: float, digits: int = 2) -> str:
    """Format a number with so many decimals: ``1,090.16``, ``6.6e+18``, ``infinite``."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite" if value > 0 else "-infinite"
    return f"{value:,.{digits}f}" if abs(value) < _LARGE else f"{value:.1e}"


def show_size(count: float) -> str:
    """Format a number of bytes with its unit: ``12.3 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


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


def printable(text: str) -> str:
    """Return the text with every unsafe character replaced by its escape, such as ``\\x1b``."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def markup(text: str) -> str:
    """Return the text for an HTML page: printable, with HTML's special characters escaped."""
    return html.escape(printable(text), quote=True)

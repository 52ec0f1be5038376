"""Sizes as people write them: ``500M``, ``1.5 GB``, ``300000``."""

from __future__ import annotations

import re

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)(i?)[bB]?\s*")
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(value: object) -> object:
    """Parse a size into bytes: ``M`` is a million, ``Mi`` 1,048,576; only strings are changed."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value)
    if match is None:
        raise ValueError("write a size as 500M, 2G or a number of bytes")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** _POWER[match[2].lower()])


def show_size(count: float) -> str:
    """Format a number of bytes with its unit: ``12.3 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"

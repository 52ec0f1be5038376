"""JSON lines, read strictly: Python's reader accepts NaN, infinite numbers and keys that occur twice."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from nextword.core.errors import DataError


def json_records(lines: Iterable[str], path: str) -> Iterator[tuple[int, Any]]:
    """Yield the line number and the value of every line that is not blank."""
    decoder = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_distinct)
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        try:
            value = decoder.decode(text)
        except json.JSONDecodeError as error:
            raise DataError(f"this line is not JSON ({error.msg})", path, number, error.colno) from error
        except RecursionError as error:
            raise DataError("this line is not JSON (it is nested too deeply)", path, number) from error
        except ValueError as error:
            raise DataError(f"this line is not JSON ({error})", path, number) from error
        yield number, value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"duplicate key '{key[:40]}'")
        found[key] = value
    return found

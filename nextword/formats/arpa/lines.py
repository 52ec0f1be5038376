"""ARPA numbers and lines in plain Python: the equivalent of the compiled ones, and all errors of bad lines.

One n-gram a line: ``log10 p TAB w1 … wn [TAB log10 backoff]``. (Doug Paul's format of 1992, as SRILM and
KenLM write it.)
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nextword.core.errors import FormatError

Array = np.ndarray[Any, np.dtype[Any]]
SCALE = 10_000_000  # numbers are written with seven decimals
ZERO_LOG10 = -99.0  # what stands for log10 of zero, as in SRILM
LARGEST = 37.0  # log10 of what float32 holds
LN10 = math.log(10.0)
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_TO_SPACE = bytes.maketrans(b"\t\r", b"  ")


def fixed_point(values: Array, positive: bool) -> Array:
    """Return log10 of probabilities or weights in ten-millionths; zero becomes -99.

    A probability that rounding has put above 1 is written as 1, since readers refuse positive logarithms.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(values, dtype=np.float64)  # twice as quick as log10
    logs *= SCALE / LN10
    np.clip(logs, ZERO_LOG10 * SCALE, -ZERO_LOG10 * SCALE if positive else 0.0, out=logs)
    return np.rint(logs, out=logs).astype(np.int32)


def show_number(number: int) -> bytes:
    """Return a fixed-point number as text."""
    if number == 0:
        return b"0"
    whole, rest = divmod(abs(number), SCALE)
    return b"%s%d.%07d" % (b"-" if number < 0 else b"", whole, rest)


def show_lines(
    numbers: Array,
    backoffs: Array | None,
    words: Array,
    parents: Array,
    prefixes: Array,
    names: Sequence[bytes],
) -> Iterator[bytes]:
    """Yield the lines of neighbouring n-grams; the arguments are those of `arpa.kernels.format_lines`."""
    shown = map(show_number, numbers.tolist())
    weights = (
        [b""] * len(numbers) if backoffs is None else [b"\t" + show_number(b) for b in backoffs.tolist()]
    )
    counts = np.diff(parents).tolist()
    starts = (b"".join(names[word] + b" " for word in row) for row in prefixes.tolist())
    before = (start for start, count in zip(starts, counts, strict=True) for _ in range(count))
    for number, start, word, weight in zip(shown, before, words.tolist(), weights, strict=True):
        yield number + b"\t" + start + names[word] + weight + b"\n"


def parse_number(field: bytes, what: str, path: str | os.PathLike[str], line: int) -> float:
    """Parse a logarithm of a line; a word instead of a number, NaN and infinity are errors."""
    if not _NUMBER.fullmatch(field):
        if what == "log10 probability" and field.lower() == b"-inf":
            return -math.inf
        raise FormatError(
            f"the {what} is {shown(field)}, which is not a finite number; {_write_again}", path, line
        )
    value = float(field)
    if math.isinf(value) or (what == "log10 backoff" and value > LARGEST):
        raise FormatError(
            f"the {what} is {shown(field)}, which is not a finite number; {_write_again}", path, line
        )
    return value


_write_again = "write the file again with the program that made it"


def fields_of(text: bytes) -> list[bytes]:
    """Split a line at spaces, tabs and returns only: any other control character belongs to a field."""
    return [field for field in text.translate(_TO_SPACE).split(b" ") if field]


def parse_line(
    text: bytes, n: int, highest: bool, path: str | os.PathLike[str], line: int
) -> tuple[float, list[bytes], float]:
    """Parse an n-gram line into log10 probability, words and log10 backoff; an error says what is wrong."""
    fields = fields_of(text)
    if not fields:
        raise FormatError(f"there is an empty line among the {n}-grams; {_write_again}", path, line)
    if fields[0].startswith(b"\\"):
        raise FormatError(
            f"{shown(text)} was found where a {n}-gram was expected; {_write_again}", path, line
        )
    probability = parse_number(fields[0], "log10 probability", path, line)
    if not n + 1 <= len(fields) <= n + 2:
        raise FormatError(
            f"a {n}-gram line has a number, {n} word{'s' * (n > 1)} and at most one more number, but this "
            f"one has {len(fields)} fields; {_write_again}",
            path,
            line,
        )
    if probability > 0:
        raise FormatError(
            f"the log10 probability is {probability:g}, and a probability above 1 does not exist (old IRSTLM "
            f"versions write such files); {_write_again}",
            path,
            line,
        )
    backoff = parse_number(fields[-1], "log10 backoff", path, line) if len(fields) == n + 2 else 0.0
    if highest and backoff != 0.0:
        raise FormatError(
            f"a {n}-gram has the backoff {backoff:g}, but {n} is the highest order of this file and "
            f"nothing can back off from it; {_write_again}",
            path,
            line,
        )
    return probability, fields[1 : n + 1], backoff


def shown(data: bytes) -> str:
    """Show bytes of a foreign file in a message: short, and without control characters."""
    text = data[:60].decode("utf-8", "backslashreplace")
    return repr(text) + ("…" if len(data) > 60 else "")

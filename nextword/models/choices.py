"""Settings that are written as a word with a number: ``truncated(35)``, ``scheduled(linear, 0.5)``.

Truncated and randomised backpropagation through time [XMU "Backpropagation through time"], teacher forcing
and scheduled sampling [MAUSAM "Scheduled Sampling"]. Read and checked here, before anything is built.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_CALL = re.compile(r"\s*([a-z-]+)\s*(?:\(([^()]*)\))?\s*")
BPTT = "full, truncated(k) or random(p), as in truncated(35)"
FORCING = "teacher, free or scheduled(linear|exponential|inverse-sigmoid), as in scheduled(linear, 0.5)"


class Bptt(NamedTuple):
    """How far the gradient goes back: through a whole row, at most ``chunk`` positions, or by lot."""

    kind: str  # full, truncated, random
    chunk: int | None = None  # truncated: the gradient goes back so many positions at most
    keep: float = 1.0  # random: the probability that it goes back one position more


class Forcing(NamedTuple):
    """What the model reads in training: the text, its own words, or more and more of its own."""

    kind: str  # teacher, free, scheduled
    schedule: str = ""
    value: float = 0.0  # the schedule's parameter


# A schedule's parameter where none is given, its limits, and what it is.
SCHEDULES: dict[str, tuple[float, float, float, str]] = {
    "linear": (0.5, 0.0, 1.0, "the share of true words at the end, from 0 to 1"),
    "exponential": (0.99, 0.0, 1.0, "the base k of k^i, from 0 to 1"),
    "inverse-sigmoid": (25.0, 1.0, 1000.0, "the k of k / (k + exp(i / k)), from 1 to 1000"),
}


def parse_bptt(text: str) -> Bptt:
    """``full``, ``truncated(k)`` with k >= 1, ``random(p)`` with 0 < p <= 1."""
    name, values = _parts(text, BPTT)
    if name == "full" and not values:
        return Bptt("full")
    if name == "truncated" and len(values) == 1:
        number = _number(values[0])
        if number is None or number != int(number) or number < 1:
            raise ValueError("the k of truncated(k) must be a whole number of 1 or more, as in truncated(35)")
        return Bptt("truncated", chunk=int(number))
    if name == "random" and len(values) == 1:
        share = _number(values[0])
        if share is None or not 0 < share <= 1:
            raise ValueError("the p of random(p) must be more than 0 and at most 1, as in random(0.9)")
        return Bptt("random", keep=share)
    raise ValueError(f"it must be {BPTT}")


def parse_forcing(text: str) -> Forcing:
    """``teacher``, ``free``, or ``scheduled(NAME)`` with the schedule's parameter after a comma if wanted."""
    name, values = _parts(text, FORCING)
    if name in ("teacher", "free") and not values:
        return Forcing(name)
    if name != "scheduled" or len(values) > 2:
        raise ValueError(f"it must be {FORCING}")
    schedule = values[0] if values else "linear"
    if schedule not in SCHEDULES:
        raise ValueError(f"'{schedule}' is no schedule; there are: {', '.join(SCHEDULES)}")
    default, least, most, meaning = SCHEDULES[schedule]
    value = default if len(values) < 2 else _number(values[1])
    if value is None or not least <= value <= most:
        raise ValueError(f"the number of scheduled({schedule}, …) is {meaning}")
    return Forcing("scheduled", schedule, value)


def _parts(text: str, allowed: str) -> tuple[str, list[str]]:
    found = _CALL.fullmatch(text)
    if found is None:
        raise ValueError(f"it must be {allowed}")
    inside = found[2]
    return found[1], [] if inside is None else [part.strip() for part in inside.split(",")]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None

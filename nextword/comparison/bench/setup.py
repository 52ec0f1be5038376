"""What a bench compares, on which text and with which budget: checked before any training."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nextword.comparison import setup as comparison
from nextword.comparison.bench.rows import Rows, rows_of
from nextword.comparison.entries import Entry
from nextword.comparison.setup import Setup, folder_of
from nextword.core.errors import ConfigError
from nextword.core.suggestions import unknown
from nextword.data.corpora import DEFAULT
from nextword.data.source import Names
from nextword.evaluation.lm.probes import PROBES, read_pairs

MATCHES = ("tokens", "minutes", "operations", "parameters")
MOST_HELD = 400_000  # bytes of the new text that are measured, where none is named
BATCH = 8  # rows of a step, unless set otherwise: many small steps learn most from little text


@dataclass(frozen=True)
class Budget:
    """What the baseline may use, and what the other rows have in common with it."""

    tokens: int | None  # that the baseline reads; None: as many as fit into the minutes
    minutes: float | None  # of the processor, for the baseline
    match: str

    def describe(self) -> str:
        """Return the budget as people read it."""
        first = f"{self.tokens:,} tokens" if self.tokens else f"{self.minutes:g} minutes"
        if self.match == "tokens":
            return f"{first} for each run"
        if self.match == "minutes":
            return f"{first} for each run" if not self.tokens else f"the time of {first} for each run"
        if self.match == "operations":
            return f"{first} for the baseline, as many operations for each other run"
        return f"{first} for the baseline, as many steps and about as many parameters for each other run"


@dataclass(frozen=True)
class BenchSetup:
    """Rows, texts, budget, and where results go."""

    setup: Setup
    rows: Rows
    budget: Budget
    seeds: int
    probes: tuple[str, ...] = ()  # kinds of questions, and files of minimal pairs

    @property
    def entries(self) -> list[Entry]:
        """All runs: the first seed of every row, then the second, and so on."""
        return sorted(self.setup.entries, key=lambda entry: entry.number)

    def entry(self, preset: str) -> Entry:
        """Return the first run of a row."""
        return next(entry for entry in self.setup.entries if entry.model == preset)


def set_up(
    data: Names,
    rows: str | Sequence[str],
    *,
    valid: Names = (),
    tokenizer: str | None = None,
    sets: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    minutes: float | None = None,
    tokens: int | None = None,
    match: str | None = None,
    seeds: int = 1,
    probes: Sequence[str] = (),
) -> BenchSetup:
    """Check everything the user asked for; the text is read once, to find the split and its hash."""
    _check_probes(probes)
    found, budget = rows_of(rows), budget_of(minutes, tokens, match)
    given = {"train.batch": BATCH} | dict(sets or {})
    _check_given(given)
    names = [row.preset for row in found.trained]
    folder = folder_of(out, next((os.fspath(name) for name in data), DEFAULT))
    place = folder if out is not None else folder.with_name(f"{folder.name}-bench")
    setup = comparison.set_up(
        data, names, valid=valid, tokenizer=tokenizer or "bpe", sets=given, out=place, seeds=seeds,
        most=MOST_HELD,
    )  # fmt: skip
    if counted := [entry.model for entry in setup.entries if not entry.is_neural]:
        raise ConfigError(f"'{counted[0]}' does not learn by steps and has no budget to match; leave it out")
    return BenchSetup(setup, found, budget, seeds, tuple(dict.fromkeys(probes)))


def budget_of(minutes: float | None, tokens: int | None, match: str | None) -> Budget:
    """Check what the user asked for: tokens or minutes, and what the rows have in common."""
    if (minutes is None) == (tokens is None):
        raise ConfigError("--rows needs a budget for each run: either --tokens N or --minutes M")
    if minutes is not None and not minutes > 0:
        raise ConfigError(f"'minutes' is {minutes}; it must be more than 0")
    if tokens is not None and tokens < 1:
        raise ConfigError(f"'tokens' is {tokens}; it must be 1 or more")
    match = match or ("minutes" if tokens is None else "tokens")
    if match not in MATCHES:
        raise ConfigError(unknown("match", match, MATCHES))
    return Budget(tokens, minutes, match)


def _check_probes(names: Sequence[str]) -> None:
    """Refuse what is neither a kind of questions nor a file of minimal pairs."""
    for name in names:
        if name not in PROBES:
            if not Path(name).is_file():
                raise ConfigError(unknown("probe", name, tuple(PROBES), "(or a file of minimal pairs)"))
            read_pairs(Path(name))


def _check_given(sets: Mapping[str, Any]) -> None:
    """Refuse settings that the bench chooses itself."""
    for key, why in (
        ("train.steps", "--tokens or --minutes"),
        ("train.epochs", "--tokens or --minutes"),
        ("train.rate", "a short sweep, row by row"),
        ("train.seed", "--seeds"),
    ):
        if key in sets:
            raise ConfigError(f"'{key}' cannot be set for --rows: it is chosen by {why}; leave it out")

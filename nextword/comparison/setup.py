"""What is compared, and on which text: settings are checked and the text is split before any training.

One split for all: the end of the text is held out, or a text of its own is given. Where networks or mixtures
take part, a piece before it is for their choices (when to stop, which weights): nothing is chosen on the text
that is measured.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nextword.comparison.entries import Entry, entries
from nextword.core.errors import ConfigError
from nextword.data.corpora import DEFAULT
from nextword.data.source import Names, Source
from nextword.data.split import divide, hold_out
from nextword.evaluation.lines.scores import LineCutter
from nextword.evaluation.lm import spans
from nextword.runs.settings import RunSettings

Array = np.ndarray[Any, np.dtype[Any]]
MOST_HELD = 2_000_000  # bytes measured by default where networks take part
MOST_TUNED = 600_000  # bytes for the choices


@dataclass(frozen=True)
class Setup:
    """The models with their settings, the texts, and where results go."""

    entries: tuple[Entry, ...]
    train: Source
    tune: Source | None  # for choices; None where there are none
    held: Source
    data: tuple[str, ...]  # how the text was named
    valid: tuple[str, ...]
    digest: str  # of all texts
    out: Path
    minutes: float | None = None
    tokenizers: Mapping[str, str] = field(default_factory=dict)  # the file that all of a name share
    blocks: Array = field(default_factory=lambda: np.zeros(1, dtype=np.int64))  # of each held-out line
    block_bytes: Array = field(default_factory=lambda: np.ones(1))

    @property
    def settings(self) -> RunSettings:
        """The settings of the first entry, for what all have in common."""
        return self.entries[0].settings

    @property
    def has_networks(self) -> bool:
        """Whether an entry is a network."""
        return any(entry.is_neural for entry in self.entries)


def set_up(
    data: Names = (),
    models: Sequence[str] = (),
    *,
    valid: Names = (),
    tokenizer: str | Sequence[str] | None = None,
    sets: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    minutes: float | None = None,
    seeds: int = 1,
    most: int | None = None,
) -> Setup:
    """Check everything the user asked for; the text is read once, to find the split and its hash.

    ``most``: bytes of the new text that are measured, where it is not a text of its own.
    """
    if minutes is not None and not minutes > 0:
        raise ConfigError(f"'minutes' is {minutes}; it must be more than 0")
    named = tuple(os.fspath(name) for name in data) or (DEFAULT,)
    apart = tuple(os.fspath(name) for name in valid)
    given = dict(sets or {})
    tokenizers = [tokenizer] if isinstance(tokenizer, str) else list(tokenizer or ())
    found = entries(models, tokenizers, seeds, given, minutes)
    train, tune, held = _split(found, named, apart, given, most or MOST_HELD)
    digest = train.read_through() + held.read_through() + ("" if tune is None else tune.read_through())
    sizes = np.array([len(line) + 1 for line in lines(held)] or [1])
    blocks = spans.cut(sizes)
    return Setup(
        found, train, tune, held, named, apart, digest, folder_of(out, named[0]), minutes,
        blocks=blocks, block_bytes=np.bincount(blocks, weights=sizes),
    )  # fmt: skip


def _split(
    found: Sequence[Entry],
    named: tuple[str, ...],
    apart: tuple[str, ...],
    given: Mapping[str, Any],
    measured: int,
) -> tuple[Source, Source | None, Source]:
    settings, chooses = found[0].settings.data, any(entry.chooses for entry in found)
    train: Source
    held: Source
    if apart:
        train, held = Source.for_training(named, settings), Source.for_reading(apart, settings)
        if (both := train.shares_a_file_with(held)) is not None:
            raise ConfigError(
                f"{both} is in both the training text and --valid; measure on text that is not trained on"
            )
        train.keep()
        held.keep()
    else:
        most = measured if chooses and "data.hold_out" not in given else None
        train, held = hold_out(named, settings, most=most)
    if not chooses:
        return train, None, held
    train, tune = divide(train, settings.hold_out or 0.05, MOST_TUNED)
    return train, tune, held


def lines(source: Source) -> Iterator[bytes]:
    """Yield the lines of a text, without their ends."""
    cutter = LineCutter()
    for block in source.blocks():
        yield from cutter.push(block)
    yield from cutter.flush()


def folder_of(out: str | os.PathLike[str] | None, data: str) -> Path:
    """Return ``compare/DATA`` unless a folder is named, so that the same command finds its results again."""
    if out is not None:
        return Path(out)
    stem = os.path.basename(data.rstrip("/")).partition(".")[0]
    return Path("compare") / ("".join(c if c.isalnum() else "-" for c in stem).strip("-") or "text")


def split_note(setup: Setup) -> str:
    """Tell how the text was split, in one phrase."""
    held = _size(setup.block_bytes.sum())
    if setup.valid:
        summary = f"trained on {_list(setup.data)}, measured on {_list(setup.valid)}"
    else:
        summary = f"trained on {_list(setup.data)} without its end, measured on its last {held}"
    if setup.minutes is not None and setup.has_networks:
        summary += f"; {setup.minutes:g} minutes for each network"
    if setup.tune is None:
        return summary
    return summary + "; stopping and weights were chosen on a separate part"


def _size(count: float) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1, round(count / 1e3))} kB"


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)

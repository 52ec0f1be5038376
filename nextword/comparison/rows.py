"""The results of one run, kept as JSON in the output folder, so that it is not trained again.

A row depends on its settings, its minutes, all texts and the version of nextword: the key is their hash.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nextword.evaluation.lm.signature import version
from nextword.runs.settings import RunSettings
from nextword.store.disk import write_file
from nextword.store.manifest import MANIFEST

_FOLDER = "rows"
_LONG = ("key", "blocks", "curve")  # left out of the JSON that people read


@dataclass(frozen=True)
class Row:
    """What was measured of one run; a number that is not finite is None."""

    model: str
    key: str
    bits_per_byte: float | None = None
    perplexity: float | None = None
    known_perplexity: float | None = None  # over known words and END
    word_perplexity: float | None = None
    unknown_rate: float = 0.0
    tokens: int = 0
    bytes: int = 0  # of the held-out text
    zero_tokens: int = 0
    tokenizer: str = ""
    seed: int | None = None  # None: no random numbers
    numbers: int = 0  # parameters or n-grams
    of: str = "parameters"  # what they are
    train_seconds: float = 0.0
    train_speed: float | None = None  # tokens per second
    tokens_per_second: float = 0.0  # scored
    write_speed: float | None = None  # tokens per second of one text
    size: int = 0  # of the run on disk
    tune_bits: float | None = None  # bits per byte of the text for choices
    is_probability: bool = True
    note: str = ""
    signature: str = ""
    run: str = ""
    parts: list[str] = field(default_factory=list)  # the models that a mixture joins
    sentences: list[str] = field(default_factory=list)
    surprise: list[list[tuple[str, float | None]]] = field(default_factory=list)  # bits of words, by sentence
    blocks: list[float | None] = field(default_factory=list)  # bits of each block of the held-out text
    curve: list[tuple[float, int, float]] = field(default_factory=list)  # seconds, tokens, bits per byte

    @property
    def is_counted(self) -> bool:
        """Whether it is a count model: without steps, and not a mixture."""
        return not self.curve and not self.parts

    @property
    def ranks(self) -> bool:
        """Whether its bits per byte can be compared: probabilities, none of them 0."""
        return self.is_probability and self.bits_per_byte is not None

    def to_json(self) -> dict[str, Any]:
        """Return every number that is meaningful by itself."""
        return {name: value for name, value in asdict(self).items() if name not in _LONG}


def ranked(rows: list[Row]) -> list[Row]:
    """Sort rows, the best first; those without finite bits per byte follow, scores last."""
    return sorted(
        rows,
        key=lambda row: (not row.ranks, not row.is_probability, row.bits_per_byte or math.inf, row.model),
    )


def key_of(settings: RunSettings, *others: Any) -> str:
    """Return the hash of everything that decides a row."""
    summary = [settings.to_toml(), *map(str, others), version()]
    return hashlib.sha256("\n".join(summary).encode()).hexdigest()


def kept(out: Path, label: str, key: str) -> Row | None:
    """Find the row of a run finished before with the same settings and texts, under whatever name."""
    for path in _files(out, label):
        found = read_json(path)
        if not isinstance(found, dict) or found.get("key") != key:
            continue
        try:
            row = Row(**found)
        except TypeError:  # written by hand, or by another version
            continue
        if row.run and (out / row.run / MANIFEST).is_file():
            return row
    return None


def _files(out: Path, label: str) -> Iterator[Path]:
    """Yield the row of this name first, then others, since names depend on tokenizers and seeds."""
    folder = out / _FOLDER
    yield folder / f"{label}.json"
    yield from sorted(folder.glob("[!.]*.json"))


def keep(out: Path, row: Row) -> None:
    """Write a row, under the name of its run."""
    write_json(out / _FOLDER / f"{row.run}.json", asdict(row))


def read_json(path: Path) -> Any:
    """Read a JSON file of ours; None if it is missing or damaged, and is then made again."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file atomically."""
    write_file(path, json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1))


def finite(value: float) -> float | None:
    """Return the number if JSON can hold it, else None."""
    return value if math.isfinite(value) else None

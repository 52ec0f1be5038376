"""One model's results, kept as JSON in the output folder, so that a finished model is not trained again.

A row belongs to its settings, both texts and this version of nextword: the key is the hash of all of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nextword.core.disk import translate
from nextword.core.manifest import MANIFEST
from nextword.evaluate.signature import version
from nextword.train.settings import RunSettings

_FOLDER = "rows"


@dataclass(frozen=True)
class Row:
    """What was measured of one model; a number that is not finite is None."""

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
    train_seconds: float = 0.0
    tokens_per_second: float = 0.0
    size: int = 0  # of the run on disk
    is_probability: bool = True
    note: str = ""
    signature: str = ""
    run: str = ""
    sentences: list[str] = field(default_factory=list)
    surprise: list[tuple[str, float | None]] = field(
        default_factory=list
    )  # bits of each token of one sentence

    @property
    def ranks(self) -> bool:
        """Whether its bits per byte can be compared: probabilities, none of them 0."""
        return self.is_probability and self.bits_per_byte is not None

    def to_json(self) -> dict[str, Any]:
        """Every number."""
        return {name: value for name, value in asdict(self).items() if name != "key"}

    def shown(self) -> dict[str, Any]:
        """The row of the table that the terminal shows."""
        return {
            "model": self.model,
            "bits per byte": _round(self.bits_per_byte, 4),
            "perplexity": _round(self.perplexity, 1),
            "of known words": _round(self.known_perplexity, 1),
            "train s": round(self.train_seconds, 2),
            "tokens/s": round(self.tokens_per_second),
            "MB": round(self.size / 1e6, 1),
            "note": self.note,
        }


def ranked(rows: list[Row]) -> list[Row]:
    """The best first; what has no finite bits per byte follows, scores last."""
    return sorted(
        rows,
        key=lambda row: (not row.ranks, not row.is_probability, row.bits_per_byte or math.inf, row.model),
    )


def key_of(settings: RunSettings, digest: str) -> str:
    """The hash of everything that decides a row."""
    return hashlib.sha256("\n".join([settings.to_toml(), digest, version()]).encode()).hexdigest()


def kept(out: Path, model: str, key: str) -> Row | None:
    """The row of a model that was finished before with the same settings and texts."""
    found = read_json(out / _FOLDER / f"{model}.json")
    if not isinstance(found, dict) or found.get("key") != key:
        return None
    try:
        row = Row(**found)
    except TypeError:  # written by hand, or by another version
        return None
    return row if row.run and (out / row.run / MANIFEST).is_file() else None


def keep(out: Path, row: Row) -> None:
    """Write a row down."""
    write_json(out / _FOLDER / f"{row.model}.json", asdict(row))


def read_json(path: Path) -> Any:
    """What a file of ours holds; None where it is missing or damaged, and is then made again."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def write_json(path: Path, value: Any) -> None:
    """Whole or not at all."""
    temporary = path.with_name(f".{path.name}.new-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(
            json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1), encoding="utf-8"
        )
        os.replace(temporary, path)
    except OSError as error:
        raise translate(error, path) from error


def finite(value: float) -> float | None:
    """A number that JSON can hold."""
    return value if math.isfinite(value) else None


def _round(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)

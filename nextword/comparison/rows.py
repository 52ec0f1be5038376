"""The results of one run, kept as JSON in the output folder, so that it is not trained again.

A row depends on its settings, its minutes, all texts and the version of nextword: the key is their hash.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from nextword.evaluation.lm.signature import version
from nextword.runs.settings import RunSettings
from nextword.store.manifest import MANIFEST
from nextword.system.disk import write_file

_FOLDER = "rows"
_LONG = ("key", "blocks", "curve")  # left out of the JSON that people read


@dataclass(frozen=True)
class Result:
    """What is kept of one run, whatever its task."""

    model: str
    key: str
    _: KW_ONLY
    seed: int | None = None  # None: no random numbers
    train_seconds: float = 0.0
    size: int = 0  # of the run on disk
    note: str = ""
    run: str = ""
    plan: dict[str, Any] = field(default_factory=dict)  # what was chosen for the minutes, for all seeds
    blocks: list[float | None] = field(default_factory=list)  # what each block of the new examples costs
    curve: list[tuple[float, int, float]] = field(default_factory=list)  # seconds, tokens, what decides

    @property
    def cost(self) -> float | None:
        """The number that ranks it; lower is better."""
        raise NotImplementedError

    @property
    def tuned(self) -> float | None:
        """What decides, measured on the examples for choices."""
        raise NotImplementedError

    @property
    def ranks(self) -> bool:
        """Whether it can be compared."""
        return self.cost is not None

    @property
    def is_counted(self) -> bool:
        """Whether it has learned without steps."""
        return not self.curve

    @property
    def comes_last(self) -> bool:
        """Whether its number means something else than that of the others."""
        return False

    def to_json(self) -> dict[str, Any]:
        """Return every number that is meaningful by itself."""
        return {name: value for name, value in asdict(self).items() if name not in _LONG}


R = TypeVar("R", bound=Result)


@dataclass(frozen=True)
class Row(Result):
    """What was measured of a language model; a number that is not finite is None."""

    bits_per_byte: float | None = None
    perplexity: float | None = None
    known_perplexity: float | None = None  # over known words and END
    word_perplexity: float | None = None
    unknown_rate: float = 0.0
    unseen_rate: float = 0.0  # unknown words other than ``<unk>`` in the text
    tokens: int = 0
    bytes: int = 0  # of the held-out text
    zero_tokens: int = 0
    tokenizer: str = ""
    numbers: int = 0  # parameters or n-grams
    of: str = "parameters"  # what they are
    train_speed: float | None = None  # tokens per second
    tokens_per_second: float = 0.0  # scored
    write_speed: float | None = None  # tokens per second of one text
    tune_bits: float | None = None  # bits per byte of the text for choices
    is_probability: bool = True
    signature: str = ""
    parts: list[str] = field(default_factory=list)  # the models that a mixture joins
    sentences: list[str] = field(default_factory=list)
    surprise: list[list[tuple[str, float | None]]] = field(default_factory=list)  # bits of words, by sentence

    @property
    def cost(self) -> float | None:
        """Bits per byte."""
        return self.bits_per_byte

    @property
    def tuned(self) -> float | None:
        """Bits per byte of the text for choices."""
        return self.tune_bits

    @property
    def is_counted(self) -> bool:
        """Whether it is a count model: without steps, and not a mixture."""
        return not self.curve and not self.parts

    @property
    def ranks(self) -> bool:
        """Whether its bits per byte can be compared: probabilities, none of them 0."""
        return self.is_probability and self.bits_per_byte is not None

    @property
    def comes_last(self) -> bool:
        """Whether it is a score that is not a probability."""
        return not self.is_probability


def ranked(rows: list[R]) -> list[R]:
    """Sort rows, the best first; those without a finite number follow, scores last."""
    return sorted(
        rows,
        key=lambda row: (
            not row.ranks,
            row.comes_last,
            math.inf if row.cost is None else row.cost,
            row.model,
        ),
    )


def key_of(settings: RunSettings, *others: Any) -> str:
    """Return the hash of everything that decides a row."""
    summary = [settings.to_toml(), *map(str, others), version()]
    return hashlib.sha256("\n".join(summary).encode()).hexdigest()


def kept(out: Path, label: str, key: str, kind: type[R]) -> R | None:
    """Find the row of a run finished before with the same settings and texts, under whatever name."""
    for path in _files(out, label):
        found = read_json(path)
        if not isinstance(found, dict) or found.get("key") != key:
            continue
        try:
            row = kind(**found)
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


def keep(out: Path, row: Result) -> None:
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

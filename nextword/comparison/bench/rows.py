"""The rows of a bench: sets of presets by their name, or presets one by one; one of them is the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nextword.core.errors import ConfigError
from nextword.core.suggestions import unknown
from nextword.models import presets
from nextword.models.ablations import ABLATIONS
from nextword.models.modern import MODERN
from nextword.models.modifications import TABLE, Modification

SETS: dict[str, tuple[Modification, ...]] = {"narang": TABLE, "modern": MODERN, "ablations": ABLATIONS}
VANILLA = "narang/vanilla"
BASELINES = {"ablations": "ablations/original"}  # of the others: VANILLA
_NO_ENCODER = (
    "it changes an encoder beside a decoder, and a language model has no encoder; its costs are in nextword "
    "list modifications"
)


@dataclass(frozen=True)
class BenchRow:
    """One row: a preset, and the name under which it is shown."""

    preset: str
    title: str
    missing: str = ""  # why it is not trained; "": it is


@dataclass(frozen=True)
class Rows:
    """All rows of a bench, the baseline first."""

    all: tuple[BenchRow, ...]

    @property
    def baseline(self) -> BenchRow:
        """The row that the others are compared with."""
        return self.all[0]

    @property
    def trained(self) -> tuple[BenchRow, ...]:
        """The rows that are trained."""
        return tuple(row for row in self.all if not row.missing)

    @property
    def missing(self) -> tuple[BenchRow, ...]:
        """The rows that cannot be."""
        return tuple(row for row in self.all if row.missing)

    def find(self, preset: str) -> BenchRow:
        """Return the row of a preset."""
        return next(row for row in self.all if row.preset == preset)


def rows_of(names: str | Sequence[str]) -> Rows:
    """Return the rows of a set, or of presets by their names; a name alone is looked for in all sets."""
    parts = names.split(",") if isinstance(names, str) else names
    wanted = [part.strip() for part in parts if part.strip()]
    if not wanted:
        raise ConfigError(f"'rows' names nothing; name a set ({', '.join(SETS)}) or presets: a,b,c")
    found: dict[str, BenchRow] = {}
    for name in wanted:
        for row in [_row(name, each) for each in SETS[name]] if name in SETS else [_named(name)]:
            found.setdefault(row.preset, row)
    first = BASELINES.get(next(iter(found)).partition("/")[0], VANILLA)
    baseline = found.pop(first, None) or _named(first)
    return Rows((baseline, *found.values()))


def _row(group: str, each: Modification) -> BenchRow:
    preset = f"{group}/{each.name}"
    return BenchRow(preset, each.row or each.name, "" if each.sets is not None else _NO_ENCODER)


def _named(name: str) -> BenchRow:
    """Return the row of a name: ``swiglu``, ``narang/swiglu``, or any other model that learns by steps."""
    for group, rows in SETS.items():
        for each in rows:
            if name in (each.name, f"{group}/{each.name}"):
                return _row(group, each)
    known = [each.name for rows in SETS.values() for each in rows]
    if name not in presets.names():
        allowed = [*SETS, *known, *presets.names()]
        raise ConfigError(
            unknown("row", name, allowed, f"(nextword list modifications; sets: {', '.join(SETS)})")
        )
    return BenchRow(name, name)

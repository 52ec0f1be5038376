"""The rows of a bench in order, each tested against the baseline, and beside what was published."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from nextword.comparison.bench import published
from nextword.comparison.bench.agreement import Agreement, agree
from nextword.comparison.bench.result import BenchResult
from nextword.comparison.bench.setup import BenchSetup
from nextword.comparison.ranking import fixed, shown_p
from nextword.comparison.rows import finite
from nextword.comparison.setup import split_note
from nextword.drawing.page import Cell, Table
from nextword.drawing.svg import number
from nextword.evaluation.lm.probes import Figure
from nextword.evaluation.significance import LEVEL, SEEDS, Test, against, holm, spread


@dataclass(frozen=True)
class RowStanding:
    """A row: its runs, and its test against the baseline."""

    preset: str
    title: str
    runs: tuple[BenchResult, ...]
    is_baseline: bool = False
    test: Test | None = None  # None: it is the baseline, or nothing can be tested
    p: float | None = None  # corrected for the number of rows; None: no verdict
    apart: str = ""  # the precision of the baseline, where it is another one

    @property
    def first(self) -> BenchResult:
        """The run of the first seed."""
        return self.runs[0]

    def mean(self, value: Callable[[BenchResult], float | None]) -> float | None:
        """Average over the seeds; None if one has no such number."""
        found = [each for each in map(value, self.runs) if each is not None]
        return float(np.mean(found)) if found and len(found) == len(self.runs) else None

    def shown(self, value: Callable[[BenchResult], float | None]) -> str:
        """Write mean and spread as in 1.892 ± 0.004."""
        values = [each for each in map(value, self.runs) if each is not None]
        return fixed(self.mean(value), spread(values))

    @property
    def bits(self) -> float | None:
        """Bits per byte of the new text, the mean over seeds."""
        return self.mean(lambda run: run.bits_per_byte)

    @property
    def precision(self) -> str:
        """The precision of the runs: fp32, or bf16 + fp32 where seeds differ."""
        return " + ".join(sorted({run.precision for run in self.runs}))

    @property
    def verdict(self) -> str:
        """The result of the test in a few words."""
        if self.is_baseline:
            return "the baseline"
        if self.test is None:
            return ""
        if self.apart:
            return f"no verdict between {self.precision} and {self.apart}"
        if self.p is None:
            return f"no verdict below {SEEDS} seeds"
        if self.p >= LEVEL:
            return f"no difference shown ({shown_p(self.p)})"
        return f"{'worse' if self.test.behind > 0 else 'better'} ({shown_p(self.p)})"

    @property
    def published(self) -> published.Published | None:
        """The row of the published table."""
        return published.of(self.preset)


@dataclass(frozen=True)
class Standing:
    """All rows, the best first."""

    rows: tuple[RowStanding, ...]
    about: str
    seeds: int
    missing: tuple[tuple[str, str], ...] = ()  # rows that cannot be trained, and why
    waiting: tuple[str, ...] = ()  # rows that are not trained yet, or diverged
    agreement: Agreement | None = None
    probes: Mapping[str, Mapping[str, Figure]] = field(default_factory=dict)  # by column and run

    @property
    def baseline(self) -> RowStanding:
        """The row that the others are compared with."""
        return next(row for row in self.rows if row.is_baseline)

    @property
    def counts(self) -> str:
        """How many rows and seeds there are."""
        by_seeds: dict[int, int] = {}
        for row in self.rows:
            by_seeds[len(row.runs)] = by_seeds.get(len(row.runs), 0) + 1
        parts = [
            f"{rows} row{'' if rows == 1 else 's'} of {seeds} seed{'' if seeds == 1 else 's'}"
            for seeds, rows in sorted(by_seeds.items())
        ]
        waiting = f"; not there: {', '.join(self.waiting)}" if self.waiting else ""
        return " and ".join(parts) + waiting

    @property
    def precisions(self) -> str:
        """Which rows were computed in another precision than the baseline; "" if none."""
        other = [row for row in self.rows if row.apart]
        if not other:
            return ""
        kinds = Counter(row.precision for row in other)
        parts = " and ".join(f"{count} in {kind}" for kind, count in sorted(kinds.items()))
        return (
            f"{self.baseline.title} was computed in {self.baseline.precision}, {parts}: the differences of "
            "these hold what the precision does, too, and have no verdict."
        )

    @property
    def is_undecided(self) -> bool:
        """Whether no row has seeds enough for a verdict."""
        return all(row.p is None for row in self.rows)

    def steps_per_second(self, row: RowStanding) -> float:
        """Return a row's speed on the machine of the baseline: rows may come from several machines."""
        return self.baseline.first.speed * row.first.relative_speed

    def table(self) -> Table:
        """Return the lecture's table for this text."""
        columns: dict[str, list[Cell]] = {
            "row": [row.title for row in self.rows],
            "params": [number(row.first.parameters) for row in self.rows],
            "ops/token": ["-" if (ops := row.first.operations) is None else number(ops) for row in self.rows],
            "step/s": [f"{self.steps_per_second(row):.2f}" for row in self.rows],
            "speed": [f"{row.first.relative_speed:.2f}" for row in self.rows],
            "early loss": [row.shown(lambda run: run.early) for row in self.rows],
            "final loss": [row.shown(lambda run: run.final) for row in self.rows],
            "bits per byte": [row.shown(lambda run: run.bits_per_byte) for row in self.rows],
            "difference": [difference(row) for row in self.rows],
        }
        if not self.is_undecided:
            columns[f"against {self.baseline.title}"] = [row.verdict for row in self.rows]
        for name, figures in self.probes.items():
            columns[_title(name, figures)] = [_probed(row, figures) for row in self.rows]
        if any(row.published is not None and row.published.final is not None for row in self.rows):
            columns["published loss"] = [_published(row) for row in self.rows]
        columns["seeds"] = [len(row.runs) for row in self.rows]
        columns["rate"] = [f"{row.first.rate:g}" for row in self.rows]
        if self.precisions:
            columns["precision"] = [row.precision for row in self.rows]
        return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))

    def __str__(self) -> str:
        """Return the table, what is missing, and how it agrees with the published one."""
        few = f" With fewer than {SEEDS} seeds no verdict is given." if self.is_undecided else ""
        lines = [str(self.table()), "", f"Trained: {self.counts}.{few}"]
        lines += [self.precisions] if self.precisions else []
        lines += [f"{title}: {why}." for title, why in self.missing]
        lines += [row.first.note and f"{row.title}: {row.first.note}." for row in self.rows if row.first.note]
        lines += [str(self.agreement)] if self.agreement else []
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return every number."""
        return {
            "about": self.about,
            "rows": [_json(row) for row in self.rows],
            "missing": dict(self.missing),
            "waiting": list(self.waiting),
            "agreement": None if self.agreement is None else self.agreement.to_json(),
            "probes": {
                name: {run: asdict(figure) for run, figure in figures.items()}
                for name, figures in self.probes.items()
            },
        }


def difference(row: RowStanding) -> str:
    """Write how far a row is from the baseline, in bits per byte."""
    return "" if row.test is None else f"{row.test.behind:+.4f}"


def _title(name: str, figures: Mapping[str, Figure]) -> str:
    """Name a column of a probe, with the share that guessing reaches."""
    chance = next((figure.chance for figure in figures.values()), None)
    return name if chance is None else f"{name}, % (chance {chance:.0%})".replace("%)", ")")


def _probed(row: RowStanding, figures: Mapping[str, Figure]) -> str:
    """Write the share of right answers in percent, with its spread over seeds."""
    shares = [100 * figures[run.run].share for run in row.runs if run.run in figures]
    if not shares:
        return "-"
    apart = spread(shares)
    return f"{np.mean(shares):.1f}" + ("" if apart is None else f" ± {apart:.1f}")


def _published(row: RowStanding) -> str:
    found = row.published
    return "-" if found is None or found.final is None else f"{found.final:.3f}"


def _json(row: RowStanding) -> dict[str, Any]:
    test = None
    if row.test is not None:
        test = {
            "difference": row.test.behind, "low": finite(row.test.low), "high": finite(row.test.high),
            "detectable": finite(row.test.detectable), "p": row.p, "verdict": row.verdict,
        }  # fmt: skip
    runs = [run.to_json() for run in row.runs]
    return {"preset": row.preset, "title": row.title, "bits_per_byte": row.bits, "test": test, "runs": runs}


def stand(setup: BenchSetup, found: Sequence[BenchResult]) -> Standing:
    """Put the runs of each row together and test every row against the baseline."""
    sizes = setup.setup.block_bytes.tolist()
    runs: dict[str, list[BenchResult]] = {}
    for run in found:
        runs.setdefault(run.model, []).append(run)
    base = setup.rows.baseline.preset
    rows = [
        RowStanding(row.preset, row.title, tuple(runs[row.preset]), row.preset == base)
        for row in setup.rows.trained
        if row.preset in runs
    ]
    rows = _tested(rows, sizes)
    rows.sort(key=lambda row: math.inf if row.bits is None else row.bits)
    return Standing(
        tuple(rows), f"{split_note(setup.setup)}; {setup.budget.describe()}", setup.seeds,
        tuple((row.title, row.missing) for row in setup.rows.missing),
        tuple(row.title for row in setup.rows.trained if row.preset not in runs),
        agree([(row.title, row.bits, row.published) for row in rows], setup.rows.baseline.title),
    )  # fmt: skip


def _tested(rows: Sequence[RowStanding], sizes: Sequence[float]) -> list[RowStanding]:
    """Test each row against the baseline; verdicts need seeds enough."""
    base = next((row for row in rows if row.is_baseline), None)
    if base is None or base.bits is None:
        return list(rows)
    able = [row for row in rows if row is not base and row.bits is not None]
    tests = {row.preset: against(_blocks(row), _blocks(base), sizes) for row in able}
    apart = {row.preset: base.precision for row in able if row.precision != base.precision}
    decided = [
        row.preset for row in able if min(len(row.runs), len(base.runs)) >= SEEDS and row.preset not in apart
    ]
    values = dict(zip(decided, holm([tests[name].p for name in decided]), strict=True))
    return [
        replace(row, test=tests.get(row.preset), p=values.get(row.preset), apart=apart.get(row.preset, ""))
        for row in rows
    ]


def _blocks(row: RowStanding) -> list[list[float]]:
    return [[math.inf if bits is None else bits for bits in run.blocks] for run in row.runs]

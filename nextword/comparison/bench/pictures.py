"""The pictures of a bench: loss against time for all rows, differences, and both rankings side by side."""

from __future__ import annotations

import math

from nextword.comparison.bench.standing import RowStanding, Standing
from nextword.drawing import svg
from nextword.drawing.slopes import Interval, Slope, intervals, slopes
from nextword.drawing.svg import Axis, Series
from nextword.evaluation.significance import LEVEL

_NAMED = 4  # best and worst rows whose lines have a name
BETTER, WORSE, ALIKE = "var(--c2)", "var(--c1)", "var(--soft)"


def learning(standing: Standing, by_tokens: bool) -> str:
    """Draw the loss of every row over time; the best, the worst and the baseline have a name and a colour."""
    rows = [row for row in standing.rows if any(run.curve for run in row.runs)]
    named = {row.preset for row in (*rows[:_NAMED], *rows[-_NAMED:], standing.baseline)}
    faint = [row for row in rows if row.preset not in named]
    per_second = {row.preset: 0.0 if by_tokens else standing.steps_per_second(row) for row in rows}
    series = [_series(row, 0, per_second[row.preset], True) for row in faint]
    shown = [row for row in rows if row.preset in named]
    series += [_series(row, look, per_second[row.preset]) for look, row in enumerate(shown)]
    axis = Axis("tokens", log=True) if by_tokens else Axis("seconds of the processor, one step after another")
    what = "tokens" if by_tokens else "time"
    return svg.lines(series, f"Loss against {what}", axis, Axis("bits per byte of the text for choices"))


def _series(row: RowStanding, look: int, per_second: float, faint: bool = False) -> Series:
    """Return a row's first seed, over its steps at this speed in seconds, or over its tokens (0)."""
    run = row.first
    per_token = run.steps / run.tokens / per_second if run.tokens and per_second else 1.0
    points = tuple((tokens * per_token, value) for _, tokens, value in run.curve)
    return Series(row.title, points, look, named=not faint, faint=faint)


def differences(standing: Standing) -> str:
    """Draw how far each row is from the baseline, with its interval."""
    found = [
        Interval(row.title, test.behind, test.low, test.high, _colour(row), f"{test.behind:+.3f}")
        for row in standing.rows
        if (test := row.test) is not None
    ]
    unit = f"bits per byte of the new text, against {standing.baseline.title}; left is better"
    return intervals(found, "Difference from the baseline", unit)


def _colour(row: RowStanding) -> str:
    """Return a colour where the interval leaves out 0 and the test, where there is one, agrees."""
    assert row.test is not None
    if (row.p is not None and row.p >= LEVEL) or row.test.low <= 0 <= row.test.high:
        return ALIKE
    return WORSE if row.test.behind > 0 else BETTER


def rankings(standing: Standing) -> str:
    """Draw the published order and the order here, each row joined to itself."""
    agreement = standing.agreement
    assert agreement is not None
    rows = {row.title: row for row in standing.rows}
    other = set(agreement.other_side)
    found = []
    for each in agreement.rows:
        row = rows[each.title]
        assert row.published is not None
        bits, loss = math.inf if row.bits is None else row.bits, row.published.final or math.inf
        colour = "var(--ink)" if row.is_baseline else WORSE if each.title in other else BETTER
        found.append(Slope(each.title, each.published, each.here, colour, f"{loss:.3f}", f"{bits:.3f}"))
    title = "The published ranking and the one here"
    return slopes(found, title, "published, final loss", "here, bits per byte")

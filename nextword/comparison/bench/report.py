"""The page of a bench: the table, loss against time, and the ranking beside the published one."""

from __future__ import annotations

from nextword.comparison.bench import pictures
from nextword.comparison.bench.plan import HORIZON, SHORT
from nextword.comparison.bench.standing import Standing
from nextword.drawing.page import Page, Table
from nextword.evaluation.significance import LEVEL, SEEDS


def page(standing: Standing) -> Page:
    """Return the whole report."""
    made = Page("Modifications of one model side by side")
    made.text(standing.about[0].upper() + standing.about[1:] + ".", soft=True)
    made.text(f"Trained: {standing.counts}.", soft=True)
    if standing.agreement is not None:
        made.verdict(None, str(standing.agreement))
    made.table(standing.table())
    _columns(made, standing)
    if any(row.test is not None for row in standing.rows):
        made.heading("Differences")
        made.picture(
            pictures.differences(standing),
            "Bits per byte of the new text against the baseline, with the 95 % interval of the difference: "
            "green is better, orange worse, grey does not differ clearly. " + _seeds(standing),
        )
    made.heading("Loss against time")
    made.picture(
        pictures.learning(standing, by_tokens=False),
        "The first seed of every row on the text for choices. Time is that of the processor: steps at the "
        "speed that was timed by turns with the baseline's, so that other programs hardly change it. The "
        "best rows, the worst and the baseline have names.",
    )
    made.picture(pictures.learning(standing, by_tokens=True), "The same over the tokens read.")
    if standing.agreement is not None:
        made.heading("Does it agree with the published table?")
        made.picture(
            pictures.rankings(standing),
            "Narang et al. 2021 trained encoder-decoders of 223 M weights on C4; here are small language "
            "models on your text. Green: on the same side of the baseline as published; orange: on the "
            "other.",
        )
    _how(made, standing)
    return made


def _columns(made: Page, standing: Standing) -> None:
    """Explain the columns, and the rows that are not there."""
    first = standing.baseline.first
    threads = f"{first.threads} thread{'' if first.threads == 1 else 's'}"
    made.text(
        "Ops are multiply-adds of matrix products for one token, forward. Speed is relative to the baseline, "
        "timed by turns with it in seconds of the processor; step/s is the baseline's "
        f"({threads}, {first.precision}) times this speed. "
        "Early and final loss are nats per token of the text for choices, after an eighth of the steps and "
        "at the end; bits per byte are of the new text, which nothing was chosen by. ± is one standard "
        "deviation over seeds.",
        soft=True,
    )
    if standing.precisions:
        made.text(standing.precisions, soft=True)
    for title, why in standing.missing:
        made.text(f"{title}: {why}.", soft=True)
    for row in standing.rows:
        if row.first.note:
            made.text(f"{row.title}: {row.first.note}.", soft=True)


def _seeds(standing: Standing) -> str:
    if min(len(row.runs) for row in standing.rows) >= SEEDS:
        return f"p values are Holm's, for all rows at once; from {LEVEL} on a row is grey."
    few = f"With fewer than {SEEDS} seeds no verdict is given"
    return f"{few}; with one, the interval is that of the text alone."


def _how(made: Page, standing: Standing) -> None:
    made.heading("How it was measured")
    made.text(
        f"Every row tried a few learning rates for {SHORT:.0%} of its steps each, with a whole schedule; "
        "where the best was the first or the last, one more beyond it. The lowest point of the parabola "
        "through the best and its neighbours, by the loss on the text for choices, is the best rate of a "
        f"short training; the long one has {SHORT:g}^{HORIZON:g} = {SHORT**HORIZON:.2f} times this rate, "
        "since longer training needs a lower one (Bjorck et al. 2025). Steps, sizes and rates are chosen "
        "once for all seeds."
    )
    rates = sorted({rate for row in standing.rows for rate in row.first.losses}, key=float)
    cells = tuple(
        (row.title, *(_loss(row.first.losses, rate) for rate in rates), f"{row.first.rate:g}")
        for row in standing.rows
    )
    made.table(Table(("loss after the trial, by rate", *rates, "rate chosen"), cells))
    for line in dict.fromkeys(row.first.signature for row in standing.rows if row.first.signature):
        made.text(line, soft=True)


def _loss(losses: dict[str, float | None], rate: str) -> str:
    if rate not in losses:
        return ""
    loss = losses[rate]
    return "diverged" if loss is None else f"{loss:.3f}"

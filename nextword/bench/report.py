"""The report of a comparison: one HTML file with table, pictures and what the models write."""

from __future__ import annotations

import math

from nextword.bench.growth import Growth
from nextword.bench.rows import Row
from nextword.evaluate import orders
from nextword.evaluate.page import Page, Table
from nextword.evaluate.svg import Axis, Series, bars, lines, scatter

_HEADS = (
    "model", "bits per byte", "perplexity", "of known words", "train, s", "tokens/s scored", "MB on disk",
    "note",
)  # fmt: skip


def page(rows: list[Row], growth: Growth | None, about: str) -> Page:
    """The whole report; rows come in the order of their rank."""
    made = Page("Language models side by side")
    made.text(about[0].upper() + about[1:] + ".", soft=True)
    best = next((row for row in rows if row.ranks), None)
    if best is not None:
        made.verdict(
            True, f"{best.model} predicts the new text best: {best.bits_per_byte:.3f} bits per byte."
        )
    _table(made, rows)
    _ranking(made, rows)
    if growth is not None:
        _by_order(made, growth, rows)
    _sentence(made, rows)
    _written(made, rows)
    _how(made, rows)
    return made


def _table(made: Page, rows: list[Row]) -> None:
    made.table(Table(_HEADS, tuple(
        (row.model, row.bits_per_byte, row.perplexity, row.known_perplexity, round(row.train_seconds, 2),
         round(row.tokens_per_second), round(row.size / 1e6, 1), row.note)
        for row in rows
    )))  # fmt: skip
    unknown = max((row.unknown_rate for row in rows), default=0.0)
    made.text(
        f"A dash is infinite: the model calls something impossible that did happen. {unknown:.1%} of the "
        "new words were never seen in training; `of known words` leaves them out, bits per byte spells "
        "them letter by letter.",
        soft=True,
    )


def _ranking(made: Page, rows: list[Row]) -> None:
    real = [row for row in rows if row.ranks]
    made.heading("Bits per byte")
    values = [(row.model, row.bits_per_byte or math.inf) for row in real]
    shown = [f"{value:.3f}" for _, value in values]
    made.picture(
        bars(values, "Bits per byte of each model", "bits per byte of the new text; less is better", shown),
        "How many bits a compressor with this model needs for one byte of the new text. Plain text has 8.",
    )
    sizes = [row.size for row in real if row.size]
    if not sizes or max(sizes) < 1.2 * min(sizes):
        return
    made.heading("What it costs")
    points = [Series(row.model, ((row.size / 1e6, row.bits_per_byte or math.inf),)) for row in real]
    made.picture(
        scatter(
            points, "Size against bits per byte", Axis("megabytes on disk", log=True), Axis("bits per byte")
        ),
        "Left and low is good: a small model that predicts well.",
    )


def _by_order(made: Page, growth: Growth, rows: list[Row]) -> None:
    most = len(growth.facts)
    part = f" Drawn from the first {growth.tokens:,} tokens of the text." if growth.is_part else ""
    made.heading("The order n: what longer n-grams bring")
    series = [
        Series(name, tuple((float(n), math.inf if y is None else y) for n, y in enumerate(values, start=1)))
        for name, values in ((row.model, growth.perplexities.get(row.model, [])) for row in rows)
        if values
    ]
    drawn = [each for each in series if len(each.real) > 1]
    left = [each.name for each in series if len(each.real) <= 1]
    missing = f" Not drawn, since infinite: {', '.join(left)}." if left else ""
    names = tuple(each.name for each in series)
    cells = tuple((n, *(growth.perplexities[name][n - 1] for name in names)) for n in range(1, most + 1))
    made.picture(
        lines(
            drawn,
            "Perplexity by order",
            orders.orders_axis(most),
            Axis("perplexity of the new text", log=True),
        ),
        f"Perplexity of the new text by order.{missing}{part}",
        Table(("order", *names), cells),
    )
    made.heading("The sparsity problem")
    made.picture(
        orders.unseen_picture(growth.facts),
        "The share of n-grams of the new text that the training text does not have." + part,
        orders.table(growth.facts),
    )
    made.heading("The storage problem")
    made.picture(
        orders.bytes_picture(growth.facts, growth.text_bytes),
        "All n-grams that were seen must be stored: bytes of a model by order, and of the text itself."
        + part,
    )


def _sentence(made: Page, rows: list[Row]) -> None:
    first = next((row for row in rows if row.surprise), None)
    if first is None:
        return
    heads = [token for token, _ in first.surprise]
    same = {row.model: [bits for _, bits in row.surprise] for row in rows
            if [token for token, _ in row.surprise] == heads}  # fmt: skip
    made.heading("One sentence, word by word")
    made.text(
        "The surprise of each word in bits (-log2 p) for a sentence of the new text; a dash is infinite."
    )
    made.heat(heads, same, 24.0)


def _written(made: Page, rows: list[Row]) -> None:
    made.heading("What the models write")
    made.text("Sampled from the beginning of a line, with the same seed.")
    for row in rows:
        if row.sentences:
            made.quotes(row.model, row.sentences)


def _how(made: Page, rows: list[Row]) -> None:
    made.heading("How it was measured")
    made.text(
        "Train is the time from the text to the saved run, scoring that of the ids of the new text. Bits "
        "per byte code the bytes of the file itself: unknown words are spelled, odd gaps coded. A score "
        "that is no probability (stupid backoff) has none, so it is not ranked."
    )
    for line in dict.fromkeys(row.signature for row in rows if row.signature):
        made.text(line, soft=True)

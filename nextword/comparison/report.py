"""The report of a comparison: one HTML file with table, pictures and generated texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nextword.comparison import pictures
from nextword.comparison.growth import Growth
from nextword.comparison.ranking import RankedModel, differences, few_seeds, table, verdict
from nextword.comparison.rows import Row
from nextword.drawing.page import Page, Table
from nextword.evaluation.lm import orders
from nextword.evaluation.significance import LEVEL, POWER, SEEDS

_TEXTS = (
    "Lines are of the text for choices, on which training decides when to stop; the number beside a name is "
    "that of the new text, as in the table."
)


def page(found: Sequence[RankedModel[Row]], growth: Growth | None, about: str) -> Page:
    """Return the whole report; the models come in the order of their rank."""
    made = Page("Language models side by side")
    made.text(about[0].upper() + about[1:] + ".", soft=True)
    if summary := verdict(found):
        made.verdict(True, summary)
    _table(made, found)
    _ranking(made, found)
    _learning(made, found)
    _costs(made, found)
    _sentences(made, found)
    _written(made, found)
    if growth is not None:
        _by_order(made, growth, found)
    _how(made, found)
    return made


def _table(made: Page, found: Sequence[RankedModel[Row]]) -> None:
    made.table(table(found))
    summary = ["Bits per byte and perplexity are of the new text, which no model has read or was chosen by."]
    summary += [f"{each.name}: {note}." for each in found for note in (each.note, each.planned) if note]
    if any(each.first.zero_tokens for each in found):
        summary.append("A dash means infinite: the model gave probability 0 to something that occurred.")
    if unknown := max((each.first.unseen_rate for each in found), default=0.0):
        summary.append(
            f"{unknown:.1%} of the new words were never seen in training; `of known words` leaves them out, "
            "bits per byte spells them letter by letter."
        )
    if len({each.first.tokenizer for each in found}) > 1:
        summary.append("Perplexities of different tokenizers do not compare; bits per byte do.")
    summary.append(
        "Trained, scored and written are tokens per second; written is one text at a time. MB is the run's "
        "size on disk."
    )
    made.text(" ".join(summary), soft=True)


def _ranking(made: Page, found: Sequence[RankedModel[Row]]) -> None:
    made.heading("Bits per byte")
    seeds = max((len(each.rows) for each in found), default=1)
    whiskers = f" The whiskers are one standard deviation over {seeds} seeds." if seeds > 1 else ""
    made.picture(
        pictures.ranking(found),
        "How many bits a compressor with this model needs for one byte of the new text; less is better. "
        f"Plain text has 8.{whiskers}",
    )
    _differences(made, found)


def _differences(made: Page, found: Sequence[RankedModel[Row]]) -> None:
    """Add how far each model is behind the best, and how certain that is."""
    tested, few = differences(found), few_seeds(found)
    if tested is None:
        return
    made.table(tested)
    made.text(
        f"Detectable is the smallest difference that {POWER:.0%} of such comparisons would have found "
        "significant. A smaller one may exist." + (f" {few[0].upper()}{few[1:]}." if few else ""),
        soft=True,
    )


def _learning(made: Page, found: Sequence[RankedModel[Row]]) -> None:
    if not any(row.curve for each in found for row in each.rows):
        return
    made.heading("How they learn")
    made.picture(
        pictures.learning(found, by_tokens=False),
        "The same seconds for each network: the lowest line learns most in the time. A flat line is a count "
        f"model, which has no steps; it begins when the model was ready. {_TEXTS}",
    )
    made.picture(
        pictures.learning(found, by_tokens=True),
        "The same text for each: the lowest line learns most from what it has read, however long that took. "
        + _TEXTS,
    )


def _costs(made: Page, found: Sequence[RankedModel[Row]]) -> None:
    made.heading("What it costs")
    for kind, caption in (
        (
            pictures.SECONDS,
            "Lower left is better. The dotted line joins the models that no other model beats on both axes.",
        ),
        (pictures.SIZE, "The same by the size of the run on disk."),
        (pictures.SPEED, "The same by the time that scoring takes."),
    ):
        if pictures.differ(found, kind):
            made.picture(pictures.pareto(found, kind), caption)


def _sentences(made: Page, found: Sequence[RankedModel[Row]]) -> None:
    asked = max((len(each.first.surprise) for each in found), default=0)
    if not asked:
        return
    made.heading("The same sentences, word by word")
    made.text(
        "The surprise of each word in bits (-log2 p) in sentences of the new text, given what stood before "
        "them: the redder, the less expected; bold is the model that expected a word most. Tokens are summed "
        "to words, unknown words are spelled; a dash is infinite."
    )
    values = [bits for each in found for text in each.first.surprise for _, bits in text if bits is not None]
    hot = float(np.quantile(values, 0.95)) if values else 1.0
    for place in range(asked):
        shown = {each.name: each.first.surprise[place] for each in found if len(each.first.surprise) > place}
        heads = [word for word, _ in next(iter(shown.values()))]
        same = {name: words for name, words in shown.items() if [word for word, _ in words] == heads}
        made.heat(heads, {name: [bits for _, bits in words] for name, words in same.items()}, hot)


def _written(made: Page, found: Sequence[RankedModel[Row]]) -> None:
    made.heading("Generated texts")
    made.text("Sampled from the beginning of a text, with the same seed, unedited.")
    for each in found:
        if each.first.sentences:
            made.quotes(each.name, each.first.sentences)


def _by_order(made: Page, growth: Growth, found: Sequence[RankedModel[Row]]) -> None:
    most = len(growth.facts)
    part = f" Drawn from the first {growth.tokens:,} tokens of the text." if growth.is_part else ""
    made.heading("n-grams: the effect of a longer n")
    drawn, left = pictures.by_order(growth, [each.name for each in found])
    missing = f" Not drawn, since infinite: {', '.join(left)}." if left else ""
    names = tuple(each.name for each in found if each.name in growth.perplexities)
    cells = tuple((n, *(growth.perplexities[name][n - 1] for name in names)) for n in range(1, most + 1))
    made.picture(
        drawn, f"Perplexity of the new text by order.{missing}{part}", Table(("order", *names), cells)
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


def _how(made: Page, found: Sequence[RankedModel[Row]]) -> None:
    made.heading("How it was measured")
    made.text(
        "Bits per byte code the bytes of the file itself: unknown words are spelled, unusual gaps coded. A "
        "score that is not a probability (stupid backoff) has none, so it is not ranked. Train is the time "
        "from the text to the saved run."
    )
    if any(row.curve for each in found for row in each.rows):
        made.text(
            "Networks had the same minutes each, with a tokenizer that was trained beforehand; a count model "
            "takes the time it needs. A size that was left open is chosen once per model, for all its seeds, "
            "by the processor time of a few steps."
        )
    if any(each.first.parts for each in found):
        made.text(
            "The mixture joins the best count model and the best network of the list as they were trained: "
            "which these are, and their weights, was decided on the text for choices. Its seconds are those "
            "of both."
        )
    if any(each.test is not None for each in found):
        made.text(_test(found))
    for line in dict.fromkeys(each.first.signature for each in found if each.first.signature):
        made.text(line, soft=True)


def _test(found: Sequence[RankedModel[Row]]) -> str:
    blocks = len(found[0].first.blocks)
    return (
        f"Each model is compared with the best on {blocks} blocks of the new text. Seeds are resampled, then "
        "blocks, the same for both models (hierarchical bootstrap); interval and p follow Student's "
        "distribution with Welch's degrees of freedom. The p values are Holm's, for all models at once; from "
        f"{LEVEL} on there is no significant difference. Below {SEEDS} seeds nothing is decided."
    )

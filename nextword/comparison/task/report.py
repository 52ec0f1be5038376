"""The table and the one-file report of a comparison of any task."""

from __future__ import annotations

from collections.abc import Sequence

from nextword.comparison import pictures
from nextword.comparison.ranking import RankedModel, differences, few_seeds, fixed, seconds, verdict, whole
from nextword.comparison.task.rows import TaskRow
from nextword.drawing.page import Cell, Page, Table
from nextword.evaluation.significance import LEVEL, POWER, SEEDS

Models = Sequence[RankedModel[TaskRow]]


def table(found: Models) -> Table:
    """Return the results: every measure of the task is a column, the one that decides first."""
    columns: dict[str, list[Cell]] = {"model": [each.name for each in found]}
    for name in dict.fromkeys(name for each in found for row in each.rows for name in row.shown):
        columns[readable(name)] = [_measure(each, name) for each in found]
    columns["train s"] = [seconds(each.mean(lambda row: row.train_seconds or None)) for each in found]
    columns["measured/s"] = [whole(each.mean(lambda row: row.speed)) for each in found]
    columns["MB"] = [f"{each.first.size / 1e6:.2f}" if each.first.size else "-" for each in found]
    if any(each.verdict for each in found):
        columns["against the best"] = [each.verdict for each in found]
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def readable(name: str) -> str:
    """Return a measure as people write it: ``span_f1`` is "span F1"."""
    return name.replace("_", " ").replace("f1", "F1")


def _measure(model: RankedModel[TaskRow], name: str) -> str:
    """Write a measure as its mean and spread over the seeds; counts without decimals."""
    value = model.mean(lambda row: row.values.get(name))
    if value is not None and all(isinstance(row.values.get(name), int) for row in model.rows):
        return f"{value:,.0f}"
    return fixed(value, model.spread_of(lambda row: row.values.get(name)))


def differences_of(found: Models) -> Table | None:
    """Return how far each model is from the best."""
    return differences(found, found[0].first.of) if found else None


def page(found: Models, about: str, noun: str, samples: Sequence[tuple[str, str]]) -> Page:
    """Return the whole report; the models come in the order of their rank."""
    made = Page(f"{noun[0].upper()}{noun[1:]}s side by side")
    made.text(about[0].upper() + about[1:] + ".", soft=True)
    if summary := verdict(found):
        made.verdict(True, summary)
    made.table(table(found))
    notes = [f"{each.name}: {note}." for each in found for note in (each.note, each.planned) if note]
    notes.append("Measures are of the new examples, which no model has read or was chosen by.")
    made.text(" ".join(notes), soft=True)
    _ranking(made, found)
    _learning(made, found)
    if pictures.differ(found, pictures.SECONDS):
        made.heading("What it costs")
        made.picture(
            pictures.pareto(found, pictures.SECONDS),
            "Further left is cheaper. The dotted line joins the models that no other beats on both axes.",
        )
    _predictions(made, found, samples)
    _how(made, found)
    return made


def _ranking(made: Page, found: Models) -> None:
    if not any(each.ranks for each in found):
        return
    decides = found[0].decides
    made.heading(decides.name[0].upper() + decides.name[1:])
    seeds = max(len(each.rows) for each in found)
    whiskers = f" The whiskers are one standard deviation over {seeds} seeds." if seeds > 1 else ""
    better = "more" if decides.higher else "less"
    made.picture(pictures.ranking(found), f"Of the new examples; {better} is better.{whiskers}")
    if (tested := differences_of(found)) is not None:
        few = few_seeds(found)
        made.table(tested)
        made.text(
            f"Detectable is the smallest difference that {POWER:.0%} of such comparisons would have found "
            "significant. A smaller one may exist." + (f" {few[0].upper()}{few[1:]}." if few else ""),
            soft=True,
        )


def _learning(made: Page, found: Models) -> None:
    if not any(row.curve for each in found for row in each.rows):
        return
    made.heading("How they learn")
    texts = (
        "Lines are of the examples for choices, a part of those to train on; the number beside a name is "
        "that of the new examples, as in the table."
    )
    made.picture(
        pictures.learning(found, by_tokens=False),
        f"A flat line is a model that learns without steps; it begins when the model was ready. {texts}",
    )
    made.picture(pictures.learning(found, by_tokens=True), f"The same by what was read. {texts}")


def _predictions(made: Page, found: Models, samples: Sequence[tuple[str, str]]) -> None:
    able = [each for each in found if len(each.first.predictions) == len(samples)]
    if not samples or not able:
        return
    made.heading("The same examples")
    rows = tuple(
        (text, right, *(each.first.predictions[place] for each in able))
        for place, (text, right) in enumerate(samples)
    )
    made.table(Table(("new example", "right", *(each.name for each in able)), rows))


def _how(made: Page, found: Models) -> None:
    made.heading("How it was measured")
    made.text(
        "Every model was trained on the same examples, saved, opened again and measured on the same new "
        "ones. Train is the time from the examples to the saved run."
    )
    if any(each.test is not None for each in found):
        made.text(
            f"Each model is compared with the best on {found[0].first.examples:,} new examples. Seeds are "
            "resampled, then examples, the same for both models (hierarchical bootstrap); interval and p "
            "follow Student's distribution with Welch's degrees of freedom. The p values are Holm's, for all "
            f"models at once; from {LEVEL} on there is no significant difference. Below {SEEDS} seeds "
            "nothing is decided."
        )

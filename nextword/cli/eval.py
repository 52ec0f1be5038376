"""``nextword eval``: how well a model predicts a text, or does its task."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, PrecisionName, RunName, Sets


class Rule(StrEnum):
    """How weights adapt in dynamic evaluation."""

    sgd = "sgd"
    rms = "rms"


def evaluate(
    run: RunName,
    data: Annotated[list[str], typer.Argument(metavar="DATA", help="Files, folders or corpora.")],
    dynamic: Annotated[
        Rule | None,
        typer.Option(help="Dynamic evaluation: a neural model learns from each segment once it is scored."),
    ] = None,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write a page with pictures to this .html file.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="RUN2", help="Another translation run, compared on the same texts by a paired bootstrap."
        ),
    ] = None,
    precision: PrecisionName = "fp32",
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Measure a run: perplexity, accuracy and F1, or BLEU.

    Of a language model perplexity and bits per byte of a text, of tags and labels accuracy and F1.
    """
    from nextword.api import eval as measuring

    rule = None if dynamic is None else dynamic.value
    options = measuring.EvalOptions(rule, html, against, precision, explain=json)
    report = show.follow(measuring.evaluating(run, data, sets or (), options))
    show.as_json(report.to_json()) if json else show.result(str(report))

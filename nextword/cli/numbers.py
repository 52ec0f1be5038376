"""``nextword eval`` and ``nextword score``: how well a model predicts a text."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nextword.cli import progress, show
from nextword.cli.options import Debug, Json, RunName, Sets, TextFile


class By(StrEnum):
    """What gets a number of its own."""

    line = "line"
    token = "token"


class Rule(StrEnum):
    """How weights adapt in dynamic evaluation."""

    sgd = "sgd"
    rms = "rms"


class Format(StrEnum):
    """How rows are written."""

    tsv = "tsv"
    jsonl = "jsonl"


def evaluate(
    run: RunName,
    data: Annotated[list[str], typer.Argument(metavar="DATA...", help="Files, folders or corpora.")],
    dynamic: Annotated[
        Rule | None, typer.Option(help="A neural model learns from what it has just read, by this rule.")
    ] = None,
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Measure a run on text: perplexity, bits per byte, unknown words, signature."""
    from nextword.api import verbs

    rule = None if dynamic is None else dynamic.value
    report = progress.follow(verbs.evaluating(run, data, sets or (), rule))
    show.as_json(report.to_json()) if json else show.result(str(report))


def score(
    run: RunName,
    file: TextFile = "-",
    by: Annotated[By, typer.Option(help="One row a line or a token.")] = By.line,
    log10: Annotated[bool, typer.Option("--log10", help="Logarithms of base 10, as KenLM's.")] = False,
    no_bos: Annotated[bool, typer.Option("--no-bos", help="Lines do not begin a sequence.")] = False,
    no_eos: Annotated[bool, typer.Option("--no-eos", help="Lines do not end a sequence.")] = False,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="One row a token, with what gave its probability.")
    ] = False,
    format: Annotated[Format, typer.Option(help="How rows are written.")] = Format.tsv,  # noqa: A002
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Score every line of a text: log-probability, tokens, unknown words, the line."""
    from nextword.api import score as scoring

    style = scoring.Style(
        by=by.value,
        log10=log10,
        begin=not no_bos,
        end=not no_eos,
        format=format.value,
        sets=tuple(sets or ()),
    )
    if evidence:
        show.stream(scoring.evidence_rows(run, file, style))
    elif json:
        show.as_json(scoring.whole(run, file, style))
    else:
        show.stream(scoring.rows(run, file, style))

"""``nextword score``: the log-probability of every line or token."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from nextword.cli import output, show
from nextword.cli.options import Debug, Json, OutFile, Prefix, RunName, Sets, TextFile


class By(StrEnum):
    """What gets a row of its own."""

    line = "line"
    token = "token"


class Format(StrEnum):
    """How rows are written."""

    tsv = "tsv"
    jsonl = "jsonl"
    rows = "rows"


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _heading(by: By, log10: bool, evidence: bool) -> str:
    """Return the names and units of the columns, for a terminal; a program reads rows without them."""
    logp = "log10 p" if log10 else "log p (nats)"
    if evidence:
        return f"line\tposition\t{logp}\ttoken\tevidence"
    if by is By.token:
        return f"line\tposition\t{logp}\tunknown\ttoken"
    return f"{logp}\ttokens\tunknown\ttext"


def score(
    run: RunName,
    file: TextFile = "-",
    by: Annotated[By, typer.Option(help="One row per line or per token.")] = By.line,
    log10: Annotated[bool, typer.Option("--log10", help="Logarithms to base 10, as in KenLM.")] = False,
    no_bos: Annotated[
        bool, typer.Option("--no-bos", help="Score lines without a beginning-of-sentence context.")
    ] = False,
    no_eos: Annotated[
        bool, typer.Option("--no-eos", help="Score lines without the end-of-sentence token.")
    ] = False,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="One row per token, with where its probability comes from.")
    ] = False,
    format: Annotated[  # noqa: A002
        Format | None,
        typer.Option(
            help="tsv or jsonl; rows: a table's own rows, with the score added.  [default: tsv]",
            show_default=False,
        ),
    ] = None,
    out: OutFile = None,
    prefix: Prefix = "",
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Score every line of a text, or every target of pairs.

    A row has the log-probability, the tokens and how many of them are unknown.
    """
    from nextword.api import score as scoring

    options = scoring.ScoreOptions(
        by=by.value,
        log10=log10,
        begin=not no_bos,
        end=False if no_eos else None,
        format=scoring.format_for(file, out, None if format is None else format.value),
        sets=tuple(sets or ()),
        prefix=prefix,
    )
    model = scoring.scorable(run)
    writes_table = out is not None or options.format == "rows"
    if _is_terminal() and not json and not writes_table and options.format == "tsv":
        show.result(_heading(by, log10, evidence))
    if evidence:
        if json:
            show.as_json(scoring.whole_evidence(model, file, options))
        else:
            output.stream(scoring.evidence_rows(model, file, options))
        return
    for sentence in scoring.notes(model, options):
        show.note(sentence)
    if json:
        show.as_json(scoring.whole(model, file, options))
    elif writes_table:
        with output.raw_output(out, json) as target:
            scoring.write(model, file, target, options)
    else:
        output.stream(scoring.rows(model, file, options))

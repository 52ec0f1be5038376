"""``nextword filter``: keep lines by their scores."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import output, show
from nextword.cli.options import Debug, Json, OutFile, Prefix, RunName, Sets, TextFile


def filter_lines(
    run: RunName,
    file: TextFile = "-",
    against: Annotated[
        str | None,
        typer.Option(metavar="RUN2", help="Score by the difference between two runs (Moore-Lewis)."),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(
            metavar="RULE", help="best, worst, head:P, middle:P, tail:P (percent), below:X, buckets."
        ),
    ] = "best",
    add_score: Annotated[
        bool,
        typer.Option("--add-score", help="Write the score, too: before a line, or as a column of a table."),
    ] = False,
    out: OutFile = None,
    prefix: Prefix = "",
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Keep the lines that a model finds likely, or unlikely.

    It reads any length of text; with --out it can be resumed.
    """
    from nextword.api import filter as filtering

    with output.raw_output(out, json) as target:
        done = show.follow(
            filtering.filtering(
                run,
                file,
                target,
                against=against,
                keep=keep,
                sets=sets or (),
                options={"filter.add_score": add_score, "filter.prefix": prefix},
            )
        )
    if json:
        show.as_json(filtering.figures(done))
    show.note(filtering.describe(done))

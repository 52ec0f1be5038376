"""``nextword filter`` and ``nextword rescore``: lines chosen or put in order by their scores."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import progress, show
from nextword.cli.options import Debug, Json, OutFile, RunName, Sets, TextFile


def filter_lines(
    run: RunName,
    file: TextFile = "-",
    against: Annotated[
        str | None, typer.Option(metavar="RUN2", help="Keep by the difference of two runs (Moore-Lewis).")
    ] = None,
    keep: Annotated[
        str, typer.Option(metavar="RULE", help="best, worst, head:P, middle:P, tail:P (percent) or below:X.")
    ] = "best",
    out: OutFile = None,
    sets: Sets = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Keep the lines of a text that a model finds likely (or unlikely); streams, and resumes with --out."""
    from nextword.api import choosing

    with show.raw_output(out, json) as target:
        done = progress.follow(
            choosing.filtering(run, file, target, against=against, keep=keep, sets=sets or ())
        )
    if json:
        show.as_json(choosing.figures(done))
    show.note(choosing.describe(done))


def rescore(
    run: RunName,
    file: TextFile = "-",
    weights: Annotated[
        str | None, typer.Option(metavar="W1,W2,…", help="Weights of the list's scores and the model's.")
    ] = None,
    tune: Annotated[
        str | None, typer.Option(metavar="REFERENCES", help="Learn the weights from these.")
    ] = None,
    out: OutFile = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Put n-best lists (Kaldi, JSONL or TSV: id, score, text) in a new order."""
    from nextword.api import choosing

    done = choosing.rescore(run, file, weights=weights, tune=tune)
    if json:
        show.as_json(done.figures())
    else:
        show.stream(done.chunks(), out)
    show.note(done.describe())

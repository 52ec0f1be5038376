"""``nextword rescore``: reorder n-best lists."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import output, show
from nextword.cli.options import Debug, Json, OutFile, RunName, TextFile


def rescore(
    run: RunName,
    file: TextFile = "-",
    weights: Annotated[
        str | None, typer.Option(metavar="W1,W2,…", help="Weights of the list's scores and of the model's.")
    ] = None,
    tune: Annotated[
        str | None, typer.Option(metavar="REFERENCES", help="Tune the weights on these references.")
    ] = None,
    out: OutFile = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Reorder n-best lists by a model's scores.

    Kaldi's format, JSONL or TSV: id, score, text.
    """
    from nextword.api import rescore as rescoring

    done = rescoring.rescored(run, file, weights, tune)
    if json:
        show.as_json(done.figures())
    else:
        output.stream(done.chunks(), out)
    for sentence in done.notes:
        show.note(sentence)
    show.note(done.describe())

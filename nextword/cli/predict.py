"""``nextword predict``: labels, tags or translations of new inputs."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import output, show
from nextword.cli.options import Debug, OutFile, RunName


def predict(
    run: RunName,
    file: Annotated[
        str,
        typer.Argument(
            metavar="[FILE|-]", help="One input per line, a table, or a CoNLL file; - reads standard input."
        ),
    ] = "-",
    format: Annotated[  # noqa: A002
        str,
        typer.Option(
            metavar="F",
            help="Of a tagger conll, jsonl or html; of a classifier label, tsv, jsonl or html. "
            "[default: conll, label]",
            show_default=False,
        ),
    ] = "",
    pretokenized: Annotated[
        bool, typer.Option("--pretokenized", help="Words are what whitespace separates.")
    ] = False,
    out: OutFile = None,
    debug: Debug = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per input: --format jsonl.")
    ] = False,
) -> None:
    """Predict with a run: a tag for every word, or a label for every line, by its task."""
    from nextword.api import predict as predicting
    from nextword.core.errors import ConfigError
    from nextword.core.task import PredictOptions

    if json and format not in ("", predicting.JSON):
        raise ConfigError(f"'--json' is --format jsonl, and '--format' is {format}; leave one of them out")
    options = PredictOptions(predicting.JSON if json else format, pretokenized)
    pieces = predicting.written(run, file, options)
    output.stream((piece.encode("utf-8", "backslashreplace") for piece in pieces), out)
    if out is not None:
        show.note(f"written: {out}")

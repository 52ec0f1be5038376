"""``nextword predict``: labels, tags or translations of new inputs."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import output, show
from nextword.cli.options import Debug, DraftRun, OutFile, PrecisionName, RunName, Sets, With


def predict(
    run: RunName,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help="One input per line, a table, or a CoNLL file; - reads standard input."
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
    decode: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="How a translation is chosen.", show_default="beam"),
    ] = None,
    beam_size: Annotated[
        int | None, typer.Option(metavar="K", help="The beam size of --decode beam.", show_default="5")
    ] = None,
    n_best: Annotated[
        int | None, typer.Option(metavar="N", help="So many translations of each input, with --json.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Most tokens of a translation.", show_default="by input")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Of --decode sample.", show_default="1.0")
    ] = None,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="Of --decode sample.")] = None,
    top_p: Annotated[float | None, typer.Option(metavar="P", help="Of --decode sample.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Of --decode sample.")] = None,
    alignment: Annotated[
        bool, typer.Option("--alignment", help="With --json: where in the source each token looked.")
    ] = False,
    split: Annotated[
        str, typer.Option(metavar="WHAT", help="sentences: translate each sentence of a line alone.")
    ] = "",
    beside: With = None,
    draft: DraftRun = None,
    precision: PrecisionName = "fp32",
    sets: Sets = None,
    out: OutFile = None,
    debug: Debug = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per input: --format jsonl.")
    ] = False,
) -> None:
    """Tag, classify or translate every line, by the run's task."""
    from nextword.api import predict as predicting
    from nextword.api.beside import Beside
    from nextword.core.errors import ConfigError
    from nextword.core.task import PredictOptions

    if json and format not in ("", predicting.JSON):
        raise ConfigError(f"'--json' is --format jsonl, and '--format' is {format}; leave one of them out")
    asked = {
        "decode": decode, "beam_size": beam_size, "n_best": n_best, "max_tokens": max_tokens,
        "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed,
    }  # fmt: skip
    given = {name: value for name, value in asked.items() if value is not None}
    chosen = predicting.decoding_of(given, sets or ())
    options = PredictOptions(
        predicting.JSON if json else format, pretokenized, chosen, alignment, split=split
    )
    pieces = predicting.written(run, file, options, Beside(tuple(beside or ()), draft, precision))
    output.stream((piece.encode("utf-8", "backslashreplace") for piece in pieces), out)
    if out is not None:
        show.note(f"written: {out}")

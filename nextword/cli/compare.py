"""``nextword compare``: models side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, Sets


def compare(
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA", help="Files, folders or corpora (default: sotu)."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="Task of the models (default: that of the first).")
    ] = None,
    models: Annotated[str | None, typer.Option(metavar="A,B,C", help="Families or presets.")] = None,
    valid: Annotated[
        list[str] | None,
        typer.Option(metavar="DATA", help="Measure on this text instead of the last part of DATA."),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(metavar="A,B", help="One for all models, or several: every model with each.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(metavar="M", help="Minutes for each network; the limit for each count model."),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(metavar="SET|A,B,C", help="Modifications instead: narang, modern, ablations, or names."),
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens for each run of --rows, instead of --minutes.")
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(metavar="WHAT", help="What rows share: tokens, minutes, operations or parameters."),
    ] = None,
    probes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="More columns of --rows: copy, recall, dyck, files of minimal pairs."
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(metavar="K", help="Seeds for each model that is trained at random.")
    ] = 1,
    sets: Sets = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder for the runs and the report.")
    ] = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Train several models on one split and compare them.

    Prints a table and writes a one-file HTML report; can be resumed.

    Without --models: n-grams of every smoothing; with --minutes: n-grams, networks and a mixture.
    """
    from nextword.api import compare as comparing

    options = comparing.CompareOptions(
        data=tuple(data or ()), task=task, models=models.split(",") if models else (),
        valid=tuple(valid or ()), tokenizer=tokenizer, minutes=minutes, seeds=seeds, rows=rows or (),
        tokens=tokens, match=match, probes=probes.split(",") if probes else (),
        sets=tuple(sets or ()), out=out,
    )  # fmt: skip
    comparison = show.follow(comparing.comparing(options))
    if json:
        show.as_json(comparison.to_json())
    else:
        show.result(str(comparison))
        if comparison.samples:
            show.result("\nsamples:")
        for name, text in comparison.samples:
            show.result(f"  {name}: {' '.join(text.split())}")
    show.note(f"report: {comparison.report}")
    show.next_command(comparison.next_command)

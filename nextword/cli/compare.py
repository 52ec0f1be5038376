"""``nextword compare`` and ``nextword lab``: models side by side, and the lectures' experiments."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import progress, show
from nextword.cli.options import Debug, Json, Sets


def compare(
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DATA...]", help="Files, folders or corpora (default: sotu)."),
    ] = None,
    models: Annotated[str | None, typer.Option(metavar="A,B,C", help="Families or presets.")] = None,
    valid: Annotated[
        list[str] | None, typer.Option(metavar="DATA", help="Measure on this instead of the text's end.")
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(metavar="A,B", help="One for all models, or several: each model with each.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(metavar="M", help="Minutes for each network; most for each count model.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(metavar="K", help="Runs of each model that draws random numbers.")
    ] = 1,
    sets: Sets = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Where runs and report go.")] = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Train several models on one split; prints a table and writes a one-file HTML report. Resumable.

    Without --models: every smoothing of n-grams; with --minutes: n-grams, networks and a mixture.
    """
    from nextword.api import comparing

    order = comparing.Order(
        data=tuple(data or ()), models=models.split(",") if models else (), valid=tuple(valid or ()),
        tokenizer=tokenizer, minutes=minutes, seeds=seeds, sets=tuple(sets or ()), out=out,
    )  # fmt: skip
    comparison = progress.follow(comparing.comparing(order))
    if json:
        show.as_json(comparison.to_json())
    else:
        show.result(f"{comparison}\n\nwhat they write:")
        for name, text in comparison.samples:
            show.result(f"  {name}: {' '.join(text.split())}")
    show.note(f"report: {comparison.report}")
    show.next_command(f"nextword generate {comparison.best}")


def lab(
    name: Annotated[
        str, typer.Argument(metavar="[NAME|list|all]", help="An experiment, list, or all on one page.")
    ] = "list",
    run: Annotated[str | None, typer.Option(metavar="RUN", help="A run to experiment with.")] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Where pictures go.")] = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Run an experiment of the lectures: a claim, a picture and a verdict within two minutes."""
    from nextword.api import comparing

    if name == "list":
        rows = comparing.experiments()
        show.as_json(rows) if json else show.table(rows)
        return
    found = progress.follow(comparing.experimenting(name, run=run, out=out))
    show.as_json(found.to_json()) if json else show.result(str(found))

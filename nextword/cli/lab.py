"""``nextword lab``: the experiments of the lectures."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json


def lab(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME|list|all", help="An experiment, list, or all (on one page)."),
    ] = "list",
    run: Annotated[str | None, typer.Option(metavar="RUN", help="Use this run in the experiment.")] = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Folder for the pictures.")] = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Run an experiment of the lectures: claim, picture, verdict.

    Each part of the claim has a verdict of its own.
    """
    from nextword.api import lab as experiments

    if name == "list":
        rows = experiments.experiments()
        show.as_json(rows) if json else show.table(rows)
        return
    found = show.follow(experiments.experimenting(name, run=run, out=out))
    show.as_json(found.to_json()) if json else show.result(str(found))

"""``nextword import``: a run from another program's file."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, Overwrite, RunOut

BitsSet = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="model.bits=8: store each probability in 8 bits."),
]


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An ARPA file, also .gz.")],
    out: RunOut = None,
    sets: BitsSet = None,
    overwrite: Overwrite = False,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Make a run from another program's model file."""
    from nextword.api import import_ as importing
    from nextword.core.config import parse_sets

    run = show.follow(importing.importing(file, out, overwrite=overwrite, sets=parse_sets(sets or ())))
    show.as_json(run.summary()) if json else show.result(run.place)
    show.note(f"saved {run.describe()} in {run.place}")
    show.next_command(f"nextword score {run.place} -")

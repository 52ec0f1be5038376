"""``nextword import``: a run from another program's file."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import progress, show
from nextword.cli.options import Debug, Json, Overwrite, RunOut


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An ARPA file, also .gz.")],
    out: RunOut = None,
    overwrite: Overwrite = False,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Make a run from another program's model file."""
    from nextword.api import import_ as importing

    run = progress.follow(importing.importing(file, out, overwrite=overwrite))
    show.as_json(run.summary()) if json else show.result(run.place)
    show.note(f"saved {run.describe()} in {run.place}")
    show.next_command(f"nextword score {run.place} -")

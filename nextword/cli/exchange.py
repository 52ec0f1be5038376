"""``nextword export`` and ``nextword import``: runs to and from other programs' files."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from nextword.cli import progress, show
from nextword.cli.options import Debug, Json, Overwrite, RunName


class To(StrEnum):
    """Formats that can be written."""

    arpa = "arpa"


def export(
    run: RunName,
    to: Annotated[To, typer.Option(help="The format.")],
    out: Annotated[str, typer.Option(metavar="FILE", help="The file; .gz compresses it.")],
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Write a run as a file for other programs, such as KenLM."""
    from nextword.api import exchange

    done = progress.follow(exchange.exporting(run, to.value, out))
    show.as_json(done) if json else show.result(done["path"])


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An ARPA file, also .gz.")],
    out: Annotated[str | None, typer.Option(metavar="RUN", help="The new run (default: runs/…).")] = None,
    overwrite: Overwrite = False,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Make a run of another program's model file."""
    from nextword.api import exchange

    run = progress.follow(exchange.importing(file, out, overwrite=overwrite))
    show.as_json(run.summary()) if json else show.result(run.place)
    show.note(f"saved {run.describe()} in {run.place}")
    show.next_command(f"nextword score {run.place} -")

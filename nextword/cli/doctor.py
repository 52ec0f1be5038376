"""``nextword doctor``: check this machine and the runs."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import options, show
from nextword.cli.options import Debug, Json


def doctor(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Runs to check (default: all under runs/).",
            autocompletion=options.complete_run,
        ),
    ] = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Check machine, versions, disk and runs. Exit code 1: there is a problem, and it says what to do."""
    from nextword.api import doctor as checks

    found = show.follow(checks.checking(runs or ()))
    if json:
        show.as_json(checks.summary(found))
    else:
        for each in found:
            show.result(str(each))
    if any(each.level == "problem" for each in found):
        raise typer.Exit(1)

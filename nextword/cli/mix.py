"""``nextword mix``: several runs as one, with weights tuned on a held-out text."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import progress, show
from nextword.cli.options import Debug, Json, Overwrite


def mix(
    runs: Annotated[list[str], typer.Argument(metavar="RUN RUN...", help="Two runs or more.")],
    tune: Annotated[str, typer.Option(metavar="DATA", help="The held-out text.")],
    out: Annotated[str | None, typer.Option(metavar="RUN", help="The new run (default: runs/…).")] = None,
    overwrite: Overwrite = False,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Interpolate runs that share a tokenizer; EM finds the weights."""
    from nextword.api import mixing

    run = progress.follow(mixing.mixing(runs, tune, out, overwrite=overwrite))
    show.as_json(run.summary()) if json else show.result(run.place)
    show.note(f"saved {run.describe()} in {run.place}")
    show.next_command(f"nextword eval {run.place} {tune}")

"""``nextword mix``: several runs and memories as one, with weights tuned on a held-out text."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import progress, show
from nextword.cli.options import Debug, Json, Overwrite, Sets


def mix(
    runs: Annotated[list[str], typer.Argument(metavar="RUN [RUN...]", help="Runs with one tokenizer.")],
    tune: Annotated[str, typer.Option(metavar="DATA", help="The held-out text.")],
    out: Annotated[str | None, typer.Option(metavar="RUN", help="The new run (default: runs/…).")] = None,
    cache: Annotated[
        int | None, typer.Option(metavar="N", help="Add a neural cache of at most N words.")
    ] = None,
    recent: Annotated[
        int | None, typer.Option(metavar="N", help="Add a plain cache of at most N words.")
    ] = None,
    neighbours: Annotated[
        str | None, typer.Option(metavar="DATA", help="Add the nearest places of a text (kNN-LM).")
    ] = None,
    sets: Sets = None,
    overwrite: Overwrite = False,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Interpolate runs that share a tokenizer, and memories; EM finds the weights."""
    from nextword.api import mix as mixing
    from nextword.core.config import parse_sets

    asked = mixing.Asked(cache, recent, neighbours, parse_sets(sets or ()))
    run = progress.follow(mixing.mixing(runs, tune, out, overwrite=overwrite, asked=asked))
    show.as_json(run.summary()) if json else show.result(run.place)
    show.note(f"saved {run.describe()} in {run.place}")
    show.next_command(f"nextword eval {run.place} {tune}")

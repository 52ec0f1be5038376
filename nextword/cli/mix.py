"""``nextword mix``: interpolate runs and memories."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json, Overwrite, RunOut, Sets


def mix(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Runs with the same tokenizer.")],
    tune: Annotated[str, typer.Option(metavar="DATA", help="Held-out text to tune the weights on.")],
    out: RunOut = None,
    cache: Annotated[
        int | None, typer.Option(metavar="N", help="Add a neural cache of at most N tokens.")
    ] = None,
    recent: Annotated[
        int | None, typer.Option(metavar="N", help="Add a cache without a network, of at most N tokens.")
    ] = None,
    neighbours: Annotated[
        str | None, typer.Option(metavar="DATA", help="Add nearest neighbours in this text (kNN-LM).")
    ] = None,
    sets: Sets = None,
    overwrite: Overwrite = False,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """Interpolate runs that share a tokenizer, and memories. EM tunes the weights."""
    from nextword.api import mix as mixing
    from nextword.core.config import parse_sets

    memories = mixing.MemoryOptions(cache, recent, neighbours, parse_sets(sets or ()))
    run = show.follow(mixing.mixing(runs, tune, out, overwrite=overwrite, memories=memories))
    show.as_json(run.summary()) if json else show.result(run.place)
    show.note(f"saved {run.describe()} in {run.place}")
    show.next_command(f"nextword eval {run.place} {tune}")

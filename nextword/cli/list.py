"""``nextword list``: what can be named."""

from __future__ import annotations

from typing import Annotated

import typer

from nextword.cli import show
from nextword.cli.options import Debug, Json


def list_slot(
    slot: Annotated[
        str | None,
        typer.Argument(metavar="SLOT|MODEL", help="A slot, a model (its settings), or modifications."),
    ] = None,
    debug: Debug = False,
    json: Json = False,
) -> None:
    """List slots, the names in one, or the settings of a model."""
    from nextword.api import list as listed

    rows = listed.slots() if slot is None else listed.names(slot)
    show.as_json(rows) if json else show.table(rows)

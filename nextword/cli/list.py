"""``nextword list``: what can be named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

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
    show.as_json(rows) if json else show.table([_for_people(row) for row in rows])


def _for_people(row: Mapping[str, Any]) -> dict[str, Any]:
    """Put the parts that a setting may name behind what it means, so that few lines are long."""
    shown = {name: value for name, value in row.items() if name != "allowed"}
    if row.get("allowed"):
        shown["description"] = f"{row['description']}: {row['allowed']}"
    return shown

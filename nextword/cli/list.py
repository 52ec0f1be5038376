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


# Columns of --json that a table for people calls otherwise: ratios to vanilla.
_SHORTER = {"parameters_relative": "params ratio", "operations_relative": "ops ratio"}


def _for_people(row: Mapping[str, Any]) -> dict[str, Any]:
    """Put what may be long at the end of a line, where a terminal folds it."""
    shown = {
        _SHORTER.get(name, name): value for name, value in row.items() if name not in ("allowed", "paper")
    }
    if row.get("allowed"):
        shown["description"] = f"{row['description']}: {row['allowed']}"
    if "paper" in row:
        shown["paper"] = row["paper"]
    return shown

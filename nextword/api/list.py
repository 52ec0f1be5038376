"""``list``: the slots of the catalog and the names in them."""

from __future__ import annotations

from typing import Any

from nextword.core import catalog


def slots() -> list[dict[str, Any]]:
    """List every slot and what it takes."""
    return [{"name": slot, "names": ", ".join(catalog.names(slot))} for slot in catalog.slots()]


def names(slot: str) -> list[dict[str, Any]]:
    """List every name of a slot with the module that holds it."""
    return [{"name": name, "module": catalog.find_path(slot, name)} for name in catalog.names(slot)]

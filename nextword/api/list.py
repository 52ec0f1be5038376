"""``list``: the slots of the catalog, the names in them, and the settings of a model."""

from __future__ import annotations

from typing import Any

from nextword.core import catalog, config
from nextword.core.settings import allowed
from nextword.models import presets
from nextword.runs.settings import plan


def slots() -> list[dict[str, Any]]:
    """List every slot and what it takes."""
    return [{"name": slot, "names": ", ".join(catalog.names(slot))} for slot in catalog.slots()]


def names(slot: str) -> list[dict[str, Any]]:
    """List every name of a slot with the module that holds it, or every setting of a model."""
    if slot not in catalog.slots() and slot in presets.names():
        return settings(slot)
    return [{"name": name, "module": catalog.find_path(slot, name)} for name in catalog.names(slot)]


def settings(model: str) -> list[dict[str, Any]]:
    """List the settings of a model: default, the parts it may name, and what it means."""
    return [
        {
            "name": f"{group}.{name}",
            "default": config.shown(getattr(each, name)),
            "allowed": ", ".join(allowed(field)),
            "description": field.description or "",
        }
        for group, each in plan(model).groups.items()
        for name, field in type(each).model_fields.items()
    ]

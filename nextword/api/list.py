"""What can be named: slots, the names in them, presets."""

from __future__ import annotations

from typing import Any

from nextword.core import catalog
from nextword.models import presets as models


def slots() -> list[dict[str, Any]]:
    """Every slot and what it takes."""
    return [{"name": slot, "names": ", ".join(catalog.names(slot))} for slot in catalog.slots()]


def names(slot: str) -> list[dict[str, Any]]:
    """Every name of a slot, with the module that holds it."""
    return [{"name": name, "module": catalog.find_path(slot, name)} for name in catalog.names(slot)]


def presets() -> list[dict[str, Any]]:
    """Every name that ``--model`` takes."""
    found = [models.find(name) for name in models.names()]
    return [
        {
            "name": preset.name,
            "family": preset.family,
            "settings": " ".join(f"{key}={value}" for key, value in preset.settings.items()),
            "summary": preset.summary,
        }
        for preset in found
    ]

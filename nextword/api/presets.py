"""``presets``: the models that ``--model`` takes."""

from __future__ import annotations

from typing import Any

from nextword.models import presets as models


def presets() -> list[dict[str, Any]]:
    """List every name that ``--model`` takes, with its family and settings."""
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

"""``presets``: the models that ``--model`` takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from nextword.models import presets as models


def presets() -> list[dict[str, Any]]:
    """List every name that ``--model`` takes: its family, its settings, and what it changes of its base."""
    found = [models.find(name) for name in models.names()]
    return [
        {
            "name": preset.name,
            "family": preset.family,
            "summary": preset.summary,
            "base": preset.base,
            "changes": " ".join(_assignments(preset.changes)),
            "settings": " ".join(_assignments(preset.settings)),
        }
        for preset in found
    ]


def _assignments(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield settings as ``--set`` takes them."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _assignments({f"{key}.{part}": each for part, each in value.items()})
        else:
            yield f"{key}={value if isinstance(value, str) else json.dumps(value)}"

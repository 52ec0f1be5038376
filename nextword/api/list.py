"""``list``: the slots of the catalog, the names in them, and the settings of a model."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from nextword.core import catalog, config
from nextword.core.descriptions import describe, origin
from nextword.core.errors import ConfigError
from nextword.core.settings import allowed
from nextword.core.suggestions import same_but_case, unknown
from nextword.models import presets
from nextword.runs.settings import plan

MODIFICATIONS = "modifications"  # what can be listed beside slots and models


def slots() -> list[dict[str, Any]]:
    """List every slot and what it takes."""
    return [{"name": slot, "names": ", ".join(catalog.names(slot))} for slot in catalog.slots()]


def names(slot: str) -> list[dict[str, Any]]:
    """List every name of a slot with one line on it and where it comes from, or every setting of a model."""
    if slot.lower() == MODIFICATIONS:
        return modifications()
    if (found := same_but_case(slot, catalog.slots())) is not None:
        return [
            {"name": name, "from": origin(found, name), "description": describe(found, name)}
            for name in catalog.names(found)
        ]
    if (model := same_but_case(slot, presets.names())) is not None:
        return settings(model)
    allowed = [*catalog.slots(), MODIFICATIONS, *presets.names()]
    raise ConfigError(unknown("slot", slot, allowed, more="nextword list"))


def modifications() -> list[dict[str, Any]]:
    """List the modifications of the Transformer, and what each costs in the table of Narang et al. 2021."""
    from nextword.models import narang  # needs torch

    return narang.listed()


def settings(model: str) -> list[dict[str, Any]]:
    """List the settings of a model: default, what it means, and the parts it may name."""
    return [
        {
            "name": f"{group}.{name}",
            "default": config.shown(attrgetter(name)(each)),
            "description": field.description or "",
            "allowed": ", ".join(allowed(field)),
        }
        for group, each in plan(model).groups.items()
        for name, field in config.leaves(type(each))
    ]

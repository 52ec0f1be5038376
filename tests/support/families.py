"""The neural families of the catalog, and a small network of each with parts of many roles."""

from __future__ import annotations

from torch import nn

from nextword.core import catalog
from nextword.core.family import NetworkFamily

NEURAL = [name for name in catalog.names("model") if isinstance(catalog.find("model", name), NetworkFamily)]
VOCABULARY = 40
SETTINGS = {
    "rnn": {"connections": "residual"},
    "lstm": {"connections": "highway", "initial": "learned"},
    "gru": {"head": "adaptive"},
    "gru-torch": {"head": "adaptive", "tied": False},
    "mingru": {"connections": "dense"},
    "window": {"tied": False},
    "transformer": {"position": "learned", "bias": True, "connections": "rezero", "norm": "layernorm"},
}


def network_of(family: str) -> nn.Module:
    """Make a small network of a family."""
    made = catalog.find("model", family)
    return made.build(made.Settings(hidden=8, **SETTINGS.get(family, {})), VOCABULARY, False)

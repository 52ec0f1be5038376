"""Tiny networks of every preset that modifies a Transformer, with random weights."""

from __future__ import annotations

import functools

import pytest
import torch

from nextword.models import presets
from nextword.models.modifications import TABLE
from nextword.models.transformer import TRANSFORMER, TransformerNetwork, TransformerSettings

V = 40
UNNORMED = {"ablations/norm-none"}  # numbers, and what is rounded off them, grow from layer to layer
LM = [row.name for row in TABLE if row.sets is not None]
# Every preset of the catalog that modifies a Transformer; those beside the table take longer together.
OTHERS = [name for name in presets.names() if name.startswith(("modern/", "ablations/"))]
every_row = pytest.mark.parametrize("name", [*LM, *(pytest.param(n, marks=pytest.mark.slow) for n in OTHERS)])


def settings(name: str) -> TransformerSettings:
    given = presets.find(name if "/" in name else f"narang/{name}").settings.items()
    values = {key.removeprefix("model."): value for key, value in given if key.startswith("model.")}
    tiny = {"hidden": 24, "head_size": 4, "inner": 32, "context": 10, "mask_impossible": True, "dropout": 0.0}
    return TransformerSettings(**{**values, **tiny})


@functools.cache
def network_of(name: str) -> TransformerNetwork:
    torch.manual_seed(3)
    network = TRANSFORMER.build(settings(name), V, False)
    network.prepare(torch.arange(V).float())
    with torch.no_grad():
        for weight in network.parameters():
            weight += (0.01 if name in UNNORMED else 0.1) * torch.randn_like(weight)
    return network

"""A part from another package: named like ours, listed with its origin, counted without a formula."""

from __future__ import annotations

import pytest
import torch

from nextword.core import catalog
from nextword.core.descriptions import origin
from nextword.models.transformer import TRANSFORMER, TransformerSettings

pytestmark = pytest.mark.usefixtures("outside")


def test_a_part_of_another_package_is_used_by_its_name():
    assert "cubed" in catalog.names("ffn")
    assert origin("ffn", "cubed") == "sorting"
    settings = TransformerSettings(layers=2, hidden=16, heads=2, context=8, ffn="cubed", init="gpt2")
    network = TRANSFORMER.build(settings, 20, False)
    assert type(network.stack.blocks[0].ffn).__name__ == "Cubed"
    assert network.stack.blocks[0].ffn.inner.out_features == 32
    network.read(torch.randint(3, 20, (2, 7)), network.start(2))[0].sum().backward()
    built = sum(weight.numel() for weight in network.parameters())
    assert TRANSFORMER.count_parameters(settings, 20) == built


def test_single_layers_may_have_it():
    settings = TransformerSettings(layers=2, hidden=16, heads=2, context=8, exceptions=("2: ffn=cubed",))
    kinds = [type(block.ffn).__name__ for block in TRANSFORMER.build(settings, 20, False).stack.blocks]
    assert kinds == ["ReLU2", "Cubed"]

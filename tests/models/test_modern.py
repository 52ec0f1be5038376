"""The newer modifications and the ablations of 2017 as presets: each is a model that can be built."""

from __future__ import annotations

import pytest
import torch

from nextword.models import presets
from nextword.models.ablations import ABLATIONS
from nextword.models.counts import count
from nextword.models.modern import MODERN
from nextword.models.transformer import TRANSFORMER
from nextword.runs.settings import plan

NAMES = [f"modern/{each.name}" for each in MODERN] + [f"ablations/{each.name}" for each in ABLATIONS]
ODD = {"ablations/attention-only", "ablations/feed-forward-only"}  # parts taken away, so fewer weights


def test_a_name_is_one_of_one_set():
    names = [each.name for each in (*MODERN, *ABLATIONS)]
    assert len(names) == len(set(names))
    assert set(NAMES) <= set(presets.names())


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_is_built_and_counted(name):
    settings = plan(name).model
    with torch.device("meta"):
        network = TRANSFORMER.build(settings, 300, True)
    assert count(settings, 300).weights == sum(weight.numel() for weight in network.parameters())
    assert name in ODD or 0.7e6 < count(settings, 4096).weights < 2e6


def test_an_ablation_changes_one_thing():
    base = dict(plan("ablations/original").groups["model"])
    other = dict(plan("ablations/norm-before").groups["model"])
    assert {key for key in base if base[key] != other[key]} == {"norm_place"}
    assert plan("ablations/warmup-none").train.warmup == 0.0
    assert plan("ablations/original").train.smoothing == 0.1


def test_the_original_begins_with_tokens_as_large_as_positions():
    torch.manual_seed(0)
    network = TRANSFORMER.build(plan("ablations/original").model, 300, True)
    tokens_BTD = network.embedding(torch.arange(3, 300)[None])
    assert tokens_BTD.var().item() == pytest.approx(1.0, rel=0.05)
    block = network.stack.blocks[0]
    assert block.ffn.out.weight.var().item() == pytest.approx(2 / (96 + 384), rel=0.1)
    assert block.mixer.from_x.weight.var().item() == pytest.approx(2 / (96 + 96), rel=0.1)

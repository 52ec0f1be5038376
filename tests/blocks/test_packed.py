"""Packed matrices and the compiled attention of single tokens give what the plain ones give."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from nextword.blocks import packed
from nextword.blocks.attention import Heads
from nextword.blocks.heads import SoftmaxHead
from nextword.blocks.packed import PackedHead, PackedLinear, can_pack, pack
from nextword.blocks.shape import Shape

needs_packing = pytest.mark.skipif(not can_pack(), reason="this torch has no packed products")


def network():
    torch.manual_seed(0)
    parts = nn.Sequential(nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 24, bias=False))
    return nn.ModuleDict({"parts": parts, "head": SoftmaxHead(24, 30, (0, 1))})


@needs_packing
@pytest.mark.parametrize("rows", [1, 2, 5, 64, 200])
def test_packed_products_are_the_plain_ones(rows):
    plain, fast = network(), network()
    pack(fast)
    assert isinstance(fast["parts"][0], PackedLinear)
    assert isinstance(fast["head"], PackedHead)
    x_BTD = torch.randn(rows, 1, 24)
    with torch.inference_mode():
        assert torch.allclose(fast["parts"](x_BTD), plain["parts"](x_BTD), atol=1e-5)
        logp_BV = fast["head"].log_probs(x_BTD[:, 0])
        assert torch.allclose(logp_BV, plain["head"].log_probs(x_BTD[:, 0]), atol=1e-5)
        assert torch.isneginf(logp_BV[:, :2]).all()
    assert fast.state_dict().keys() == plain.state_dict().keys()


@needs_packing
def test_packed_network_has_gradients_and_a_copy_of_it_can_be_trained():
    fast = network()
    pack(fast)
    made = copy.deepcopy(fast)
    made["parts"](torch.randn(3, 24)).sum().backward()
    assert made["parts"][0].weight.grad is not None
    with torch.no_grad():
        made["parts"][2].weight.zero_()
        assert made["parts"](torch.randn(3, 24)).eq(0).all()
        assert not fast["parts"](torch.randn(3, 24)).eq(0).all()


def test_network_stays_as_it_is_without_packed_products(monkeypatch):
    monkeypatch.setattr(packed, "can_pack", lambda: False)
    plain = network()
    pack(plain)
    assert type(plain["parts"][0]) is nn.Linear


@pytest.mark.parametrize("shared", [1, 2])
def test_compiled_attention_is_the_plain_one(shared):
    torch.manual_seed(0)
    shape = Shape(width=32, layers=1, heads=4, kv_heads=4 // shared, head_size=8, inner=32, context=8)
    heads = Heads(shape)
    heads.out = nn.Linear(32, 32)
    q_BN1K = torch.randn(5, 4, 1, 8)
    keys_UNSK, values_UNSK = torch.randn(2, 3, 4 // shared, 6, 8)
    sources_B, counts_U = torch.tensor([0, 2, 2, 1, 0]), torch.tensor([6, 1, 4])
    seen_BS = torch.rand(5, 6) < 0.5
    seen_BS[:, 0] = True
    with torch.inference_mode():
        assert heads.is_single(q_BN1K, keys_UNSK)
        for bias_BS in (None, torch.where(seen_BS, 0.0, -torch.inf)):
            found = heads.look(q_BN1K, keys_UNSK, values_UNSK, sources_B, counts_U, bias_BS)
            real_BS = torch.arange(6) < counts_U[sources_B][:, None] if bias_BS is None else seen_BS
            mask = real_BS[:, None, None]
            expected = heads.leave(heads.weigh(q_BN1K, keys_UNSK[sources_B], values_UNSK[sources_B], mask))
            assert torch.allclose(found, expected, atol=1e-5)

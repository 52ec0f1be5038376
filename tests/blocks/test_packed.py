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
from nextword.core import catalog

needs_packing = pytest.mark.skipif(not can_pack(), reason="this torch has no packed products")


def network():
    torch.manual_seed(0)
    parts = nn.Sequential(nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 24, bias=False))
    return nn.ModuleDict({"parts": parts, "head": SoftmaxHead(24, 30, (0, 1))})


@needs_packing
@pytest.mark.parametrize("panels", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 5, 64, 200])
def test_packed_products_are_the_plain_ones(monkeypatch, rows, panels):
    if not panels:
        monkeypatch.setattr(packed, "prefers_panels", lambda: False)
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


needs_panels = pytest.mark.skipif(not packed.prefers_panels(), reason="this processor multiplies otherwise")
SHAPES = [(5, 3), (24, 40), (256, 16), (300, 33), (1000, 64), (1024, 70)]


@needs_panels
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("inputs", "outputs"), SHAPES)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6, 7, 9, 11, 13, 64, 200])
def test_panels_give_the_plain_product_and_the_same_bits_in_every_batch(rows, inputs, outputs, bias):
    torch.manual_seed(0)
    linear = nn.Linear(inputs, outputs, bias)
    x_ND = torch.randn(rows, inputs)
    with torch.inference_mode():
        product = packed.Panels(linear.weight.detach(), linear.bias)
        y_NO = product(x_ND)
        assert torch.allclose(y_NO, linear(x_ND), atol=1e-5)
        assert torch.equal(product(x_ND[-1:]), y_NO[-1:])
        wide = torch.stack([x_ND, x_ND], dim=-1)[..., 0]  # its numbers are not side by side
        assert torch.equal(product(wide), y_NO)


def test_compiled_log_softmax_is_the_plain_one_and_keeps_nan():
    from nextword.blocks.softmax_kernel import normalize

    torch.manual_seed(0)
    logits_NV = 30 * torch.randn(7, 333)
    logits_NV[:, 3], logits_NV[2] = -torch.inf, 200.0
    logits_NV[4, 5] = 1000.0
    expected_NV = torch.log_softmax(logits_NV, dim=-1)
    normalize(logits_NV.numpy())
    assert torch.allclose(logits_NV, expected_NV, atol=1e-5, rtol=1e-6)
    logits_NV[1, 100] = torch.nan
    normalize(logits_NV.numpy())
    assert logits_NV[1].amax().isnan()
    assert not logits_NV[[0, 2, 3, 4, 5, 6]].isnan().any()


@needs_panels
def test_nan_and_infinity_stay_in_their_rows_of_a_panel():
    linear = nn.Linear(20, 30)
    x_ND = torch.randn(8, 20)
    x_ND[3, 4], x_ND[5, 6] = torch.nan, torch.inf
    with torch.inference_mode():
        y_NO = packed.Panels(linear.weight.detach(), linear.bias)(x_ND)
    assert y_NO[3].isnan().all()
    assert y_NO[5].isinf().all()
    assert y_NO[[0, 1, 2, 4, 6, 7]].isfinite().all()


@needs_panels
def test_packed_head_scores_tokens_with_the_bits_of_the_whole_distribution(monkeypatch, one_thread):
    monkeypatch.setattr(packed, "_LOGITS", 90)  # three rows at a time
    plain, fast = network()["head"], network()
    pack(fast)
    x_ND, ids_N = torch.randn(8, 24), torch.randint(2, 30, (8,))
    with torch.inference_mode():
        logp_N = fast["head"].score(x_ND, ids_N)
        assert torch.equal(logp_N, fast["head"].log_probs(x_ND).gather(1, ids_N[:, None])[:, 0])
        assert torch.allclose(logp_N, plain.score(x_ND, ids_N), atol=1e-5)
        assert fast["head"].score(x_ND[:0], ids_N[:0]).shape == (0,)


@needs_packing
@pytest.mark.parametrize("prefers", [True, False])
def test_one_thread_multiplies_by_panels_and_several_by_onednn(monkeypatch, prefers):
    monkeypatch.setattr(packed, "prefers_panels", lambda: prefers)
    product = packed.PackedMatrix(torch.randn(8, 8), None)
    before = torch.get_num_threads()
    try:
        for threads in (2, 1):
            torch.set_num_threads(threads)
            with torch.inference_mode():
                product(torch.randn(3, 8))
            assert (product.panels is not None) == (prefers and threads == 1)
    finally:
        torch.set_num_threads(before)


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
    sources_B, counts_B = torch.tensor([0, 2, 2, 1, 0]), torch.tensor([6, 1, 4, 2, 3])
    seen_BS = torch.rand(5, 6) < 0.5
    seen_BS[:, 0] = True
    with torch.inference_mode():
        assert heads.is_single(q_BN1K, keys_UNSK)
        for bias_BS in (None, torch.where(seen_BS, 0.0, -torch.inf)):
            found = heads.look(q_BN1K, keys_UNSK, values_UNSK, sources_B, counts_B, bias_BS)
            real_BS = torch.arange(6) < counts_B[:, None] if bias_BS is None else seen_BS
            mask = real_BS[:, None, None]
            expected = heads.weigh(q_BN1K, keys_UNSK[sources_B], values_UNSK[sources_B], mask)
            assert torch.allclose(found, expected, atol=1e-5)


@needs_panels
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-torch"])
def test_a_packed_recurrent_network_has_the_same_bits_in_every_batch_and_the_plain_digits(cell, one_thread):
    torch.manual_seed(0)
    plain = catalog.find("cell", cell)(24, 32).eval()
    fast = copy.deepcopy(plain)
    pack(fast)
    x_TBE, lengths_B = torch.randn(5, 9, 24), torch.tensor([5, 1, 3, 5, 2, 4, 5, 0, 5])
    state = tuple(torch.randn(9, 32) for _ in range(2 if cell == "lstm" else 1))
    with torch.inference_mode():
        h_TBH, after = fast.read(x_TBE, state, lengths_B)
        expected_TBH, expected = plain.read(x_TBE, state, lengths_B)
        for row, length in enumerate(lengths_B.tolist()):
            assert torch.allclose(h_TBH[:length, row], expected_TBH[:length, row], atol=1e-5)
            one = tuple(part[row : row + 1] for part in state)
            for x_1E in x_TBE[:length, row : row + 1]:
                one = fast.step(x_1E, one)
            for part, of_one, of_plain in zip(after, one, expected, strict=True):
                assert torch.equal(part[row : row + 1], of_one)
                assert torch.allclose(part[row], of_plain[row], atol=1e-5)


@needs_panels
def test_a_copy_of_a_packed_layer_follows_its_own_weights(one_thread):
    layer = catalog.find("cell", "lstm")(8, 8).eval()
    pack(layer)
    state = (torch.zeros(3, 8), torch.zeros(3, 8))
    with torch.inference_mode():
        before, _ = layer.step(torch.ones(3, 8), state)
    other = copy.deepcopy(layer)
    with torch.no_grad():
        other.x_to_gates.weight.mul_(2.0)
    with torch.inference_mode():
        changed, _ = other.step(torch.ones(3, 8), state)
        again, _ = layer.step(torch.ones(3, 8), state)
    assert torch.equal(before, again)
    assert not torch.allclose(before, changed)

"""Product key memory: the best of n² pairs from two lists of n keys, exactly."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from nextword.blocks.memory import MemorySettings, ProductKeyMemory
from nextword.blocks.shape import Shape

D = 8


def made(**options):
    options = {"keys": 7, "heads": 2, "size": 6, "found": 4} | options
    return ProductKeyMemory(Shape(D, 1, 2, 2, 4, 16, 10, options=(MemorySettings(**options),)))


def test_search_finds_what_comparing_all_pairs_finds():
    part, x_ND = made(), torch.randn(9, D)
    q_NHPC = part.query(x_ND).view(9, 2, 2, 3)
    q_NHPC = F.layer_norm(q_NHPC, (3,), part.gain_C, part.bias_C, 1e-6)
    halves = torch.einsum("nhpc,hpkc->nhpk", q_NHPC, part.keys_HPNC)
    all_NHV = (halves[:, :, 0, :, None] + halves[:, :, 1, None]).flatten(2)
    best = all_NHV.topk(4, dim=-1)
    expected = (part.values_VD[best.indices] * best.values.softmax(dim=-1)[..., None]).sum(dim=(1, 2))
    torch.testing.assert_close(part(x_ND[None])[0], expected)


def test_the_weights_of_a_head_sum_to_one_and_a_single_value_is_given_by_every_head():
    _, weights_NX = made().search(torch.randn(5, D))
    torch.testing.assert_close(weights_NX.view(5, 2, 4).sum(dim=-1), torch.ones(5, 2))
    single = made(keys=1, found=1)
    torch.testing.assert_close(single(torch.randn(1, 3, D))[0], (2 * single.values_VD).expand(3, D))

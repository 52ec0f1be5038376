"""Norms agree with torch, and forget what they should."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch.nn import functional as F

from nextword.blocks.norms import LayerNorm, RMSNorm
from nextword.blocks.rms import rms_norm


@hypothesis_settings(max_examples=20)
@given(st.integers(1, 40), st.integers(1, 5), st.booleans())
def test_rms_norm_and_its_derivative_agree_with_torch(width, rows, is_grouped):
    torch.manual_seed(width)
    gain = torch.randn(3, width) if is_grouped else torch.randn(width)
    x = torch.randn(rows, 3, width, requires_grad=True)
    gain.requires_grad_()
    dy = torch.randn(rows, 3, width)
    ours = torch.autograd.grad(rms_norm(x, gain, 1e-5), [x, gain], dy)
    theirs = torch.autograd.grad(F.rms_norm(x, (width,), None, 1e-5) * gain, [x, gain], dy)
    torch.testing.assert_close(rms_norm(x, gain, 1e-5), F.rms_norm(x, (width,), None, 1e-5) * gain)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_layernorm_forgets_a_shift_and_rmsnorm_a_scale_only():
    x = torch.randn(3, 16)
    layer, rms = LayerNorm(16), RMSNorm(16)
    torch.testing.assert_close(layer(x + 5), layer(x), atol=1e-4, rtol=0)
    torch.testing.assert_close(rms(7 * x), rms(x), atol=1e-4, rtol=0)
    assert (rms(x + 5) - rms(x)).abs().max() > 0.1


def test_a_new_rmsnorm_gives_root_mean_square_one():
    from nextword.blocks.norms import RMSNorm

    y_BTD = RMSNorm(64, eps=1e-12)(torch.randn(2, 3, 64) * 7)
    torch.testing.assert_close(y_BTD.square().mean(dim=-1), torch.ones(2, 3))

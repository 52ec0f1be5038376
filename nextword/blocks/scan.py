"""h(t) = a(t) ∘ h(t-1) + b(t) for all positions: the recurrence that can be computed in parallel.

Two steps are again one such step (Blelloch 1990; Feng et al. 2024 for minGRU). Long rows are cut into pieces
that advance together, then the pieces are joined: about 2√T steps instead of T. Only products of a are
formed, no quotients and no logarithms, so that with |a| <= 1 nothing can overflow.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CUT_FROM = 128  # positions from which pieces pay
SMALL = 1 << 15  # ... while a step over all pieces stays this small (numbers)


def scan_plain(a_TBH: Tensor, b_TBH: Tensor, h_BH: Tensor) -> Tensor:
    """Compute ``h_TBH``, position by position."""
    outputs = []
    for a_BH, b_BH in zip(a_TBH.unbind(0), b_TBH.unbind(0), strict=True):
        h_BH = a_BH * h_BH + b_BH
        outputs.append(h_BH)
    return torch.stack(outputs)


def scan(a_TBH: Tensor, b_TBH: Tensor, h_BH: Tensor) -> Tensor:
    """Compute ``h_TBH``, fast, and differentiable once."""
    h_TBH: Tensor = _Scan.apply(a_TBH, b_TBH, h_BH)  # type: ignore[no-untyped-call]
    return h_TBH


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a_TBH: Tensor, b_TBH: Tensor, h_BH: Tensor) -> Tensor:
        h_TBH = run(a_TBH, b_TBH, h_BH)
        ctx.save_for_backward(a_TBH, h_TBH, h_BH)
        return h_TBH

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Run the same recurrence backwards: g(t) = dL/dh(t) + a(t+1) ∘ g(t+1)."""
        a_TBH, h_TBH, h_BH = ctx.saved_tensors
        later_TBH = torch.cat([a_TBH[1:], torch.zeros_like(a_TBH[:1])])
        g_TBH = run(later_TBH, gradients[0], torch.zeros_like(h_BH), backwards=True)
        before_TBH = torch.cat([h_BH[None], h_TBH[:-1]])
        return g_TBH * before_TBH, g_TBH, g_TBH[0] * a_TBH[0]


def run(a_TBH: Tensor, b_TBH: Tensor, h_BH: Tensor, backwards: bool = False) -> Tensor:
    """Run the recurrence, from the first position to the last or the other way round."""
    T = len(a_TBH)
    if T < CUT_FROM or math.isqrt(T) * h_BH.numel() > SMALL:
        return _one_by_one(a_TBH, b_TBH, h_BH, backwards)
    if backwards:
        return run(a_TBH.flip(0), b_TBH.flip(0), h_BH).flip(0)
    return _in_pieces(a_TBH, b_TBH, h_BH, math.isqrt(T))


def _one_by_one(a_TBH: Tensor, b_TBH: Tensor, h_BH: Tensor, backwards: bool) -> Tensor:
    h_TBH = torch.empty_like(b_TBH)
    steps = list(zip(a_TBH.unbind(0), b_TBH.unbind(0), h_TBH.unbind(0), strict=True))
    for a_BH, b_BH, out_BH in reversed(steps) if backwards else steps:
        torch.addcmul(b_BH, a_BH, h_BH, out=out_BH)
        h_BH = out_BH
    return h_TBH


def _in_pieces(a_TBH: Tensor, b_TBH: Tensor, h_BH: Tensor, length: int) -> Tensor:
    """Run C pieces of S positions: in each, h = (product of a so far) ∘ h at its start + what came since."""
    T, (B, H) = len(a_TBH), h_BH.shape
    pieces = T // length
    whole = pieces * length
    a_SCBH = a_TBH[:whole].reshape(pieces, length, B, H).transpose(0, 1)
    b_SCBH = b_TBH[:whole].reshape(pieces, length, B, H).transpose(0, 1)
    since_SCBH, product_SCBH = torch.empty_like(b_SCBH), torch.empty_like(a_SCBH)
    since_SCBH[0], product_SCBH[0] = b_SCBH[0], a_SCBH[0]
    for s in range(1, length):
        torch.addcmul(b_SCBH[s], a_SCBH[s], since_SCBH[s - 1], out=since_SCBH[s])
        torch.mul(a_SCBH[s], product_SCBH[s - 1], out=product_SCBH[s])
    ends_CBH = _one_by_one(product_SCBH[-1], since_SCBH[-1], h_BH, False)
    starts_CBH = torch.cat([h_BH[None], ends_CBH[:-1]])
    h_CSBH = torch.addcmul(since_SCBH, product_SCBH, starts_CBH).transpose(0, 1)
    rest_TBH = _one_by_one(a_TBH[whole:], b_TBH[whole:], ends_CBH[-1], False)
    return torch.cat([h_CSBH.reshape(whole, B, H), rest_TBH])

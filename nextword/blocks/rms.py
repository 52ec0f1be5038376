"""The root-mean-square norm with its derivative written out: a third of the work of separate operations.

y = g ∘ x r, r = 1 / sqrt(mean(x²) + eps) (Zhang & Sennrich 2019). With d = g ∘ dy:
dx = r (d - x r² mean(d ∘ x)), dg = Σ dy ∘ x r.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, gain_D: Tensor, eps: float) -> Tensor:
        r_N1 = _inverse(x_ND, eps)
        ctx.save_for_backward(x_ND, gain_D, r_N1)
        return (x_ND * r_N1).mul_(gain_D)

    @staticmethod
    def backward(ctx: Any, dy_ND: Tensor) -> tuple[Tensor, Tensor | None, None]:
        x_ND, gain_D, r_N1 = ctx.saved_tensors
        normed_ND = x_ND * r_N1
        d_gain_D = torch.linalg.vecdot(dy_ND, normed_ND, dim=0) if ctx.needs_input_grad[1] else None
        d_ND = dy_ND * gain_D
        mean_N1 = torch.linalg.vecdot(d_ND, normed_ND).unsqueeze_(-1).div_(-x_ND.shape[-1])
        return d_ND.addcmul_(normed_ND, mean_N1).mul_(r_N1), d_gain_D, None


def rms_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """Norm the last axis, in float32 even for bfloat16; the gain has the shape of the last axis or axes."""
    x_ND = x.float() if x.dtype == torch.bfloat16 else x
    if torch.is_grad_enabled() and (x.requires_grad or gain.requires_grad):
        normed: Tensor = _RMSNorm.apply(x_ND.reshape(-1, *gain.shape), gain, eps)  # type: ignore[no-untyped-call]
        return normed.view(x.shape)
    return (x_ND * _inverse(x_ND, eps)).mul_(gain)


def _inverse(x_ND: Tensor, eps: float) -> Tensor:
    """Compute r = 1 / sqrt(mean(x²) + eps), from |x| = sqrt(Σ x²) in one pass."""
    length_N1 = torch.linalg.vector_norm(x_ND, dim=-1, keepdim=True)
    return length_N1.square_().div_(x_ND.shape[-1]).add_(eps).rsqrt_()

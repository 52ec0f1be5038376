"""Gradients that explode are cut to a length, keeping their direction [IITD-2 "Gradient clipping", XMU]."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


@torch.no_grad()
def clip(parameters: Sequence[nn.Parameter], longest: float) -> float:
    """Scale all gradients together to a norm of at most ``longest`` (0: any); returns the norm before."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = float(torch.nn.utils.get_total_norm(gradients))
    if longest and norm > longest:
        torch._foreach_mul_(gradients, longest / norm)
    return norm

"""Gradients that explode are cut to a length, keeping their direction [IITD-2 "Gradient clipping", XMU]."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from nextword.models.weights import local


@torch.no_grad()
def clip(
    parameters: Sequence[nn.Parameter], longest: float, whole: Callable[[float], float] | None = None
) -> float:
    """Scale all gradients together to a norm of at most ``longest`` (0: any); returns the norm before.

    ``whole``: the norm of the whole gradient, where these are a part of it.
    """
    gradients = [local(parameter.grad) for parameter in parameters if parameter.grad is not None]
    norm = float(torch.nn.utils.get_total_norm(gradients))
    norm = norm if whole is None else whole(norm)
    if longest and norm > longest:
        torch._foreach_mul_(gradients, longest / norm)
    return norm

"""A function whose inner results are not kept for the gradient but computed a second time: memory for time.

As `torch.utils.checkpoint`, without its import of a compiler; for functions without random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def recomputed(function: Callable[[Tensor], Tensor], x: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Return f(x); ``weights``: everything else that f uses and that learns."""
    if not torch.is_grad_enabled():
        return function(x)
    result: Tensor = _Recomputed.apply(function, x, *weights)  # type: ignore[no-untyped-call]
    return result


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[[Tensor], Tensor], x: Tensor, *weights: Tensor) -> Tensor:
        ctx.function, ctx.precision = function, _precision(x)
        ctx.save_for_backward(x, *weights)
        return function(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *weights = ctx.saved_tensors
        with torch.enable_grad(), torch.autocast(x.device.type, **ctx.precision):
            again = x.detach().requires_grad_()
            result = ctx.function(again)
        found = torch.autograd.grad(result, [again, *weights], gradient, allow_unused=True)
        return None, *found


def _precision(x: Tensor) -> dict[str, Any]:
    device = x.device.type
    is_on = torch.is_autocast_enabled(device)
    return {"enabled": is_on, "dtype": torch.get_autocast_dtype(device)} if is_on else {"enabled": False}

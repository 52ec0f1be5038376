"""The elementwise pass over logits: log p of the targets, and each row turned into its own gradient.

Gradients are made in torch's words for any type and device, and by compiled kernels for float32 and bfloat16
in main memory; the two are interchangeable. Rows are shared out to as many threads as torch uses, always in
the same way. For log p alone torch is as fast, and no compiler need be loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

_SHARED_FROM = 1 << 20  # logits; fewer are one thread's work
_NEAR = 1 << 20  # logits that stay in the cache while they are read several times


def log_probs(logits_CV: Tensor, bias_V: Tensor, targets_C: Tensor) -> Tensor:
    """log p of each row's target, some rows at a time; the logits may be overwritten."""
    logp_C = torch.empty(len(logits_CV), dtype=bias_V.dtype, device=bias_V.device)
    size = max(1, _NEAR // len(bias_V))
    for at in range(0, len(logits_CV), size):
        rows = slice(at, at + size)
        biased_RV = logits_CV[rows].to(bias_V.dtype).add_(bias_V)
        logp_C[rows] = -F.cross_entropy(biased_RV, targets_C[rows], reduction="none")
    return logp_C


def gradients(
    logits_CV: Tensor, bias_V: Tensor, targets_C: Tensor, of_bias_V: Tensor
) -> tuple[Tensor, Tensor]:
    """Each row becomes s (p - one-hot); returns log p of the targets and 1/s.

    The gradient of the bias, Σ (p - one-hot), is added to ``of_bias_V``.
    """
    if not _has_kernel(logits_CV, bias_V):
        return plain_gradients(logits_CV, bias_V, targets_C, of_bias_V)
    from nextword.blocks import loss_kernels

    is_half = logits_CV.dtype == torch.bfloat16
    kernel = loss_kernels.gradients16 if is_half else loss_kernels.gradients
    logp_C, scale_C = torch.empty(len(logits_CV)), torch.empty(len(logits_CV))
    parts = _parts(logits_CV)
    sums = [of_bias_V, *(torch.zeros_like(of_bias_V) for _ in parts[1:])]
    _share(kernel, [
        (logits_CV[rows], bias_V, targets_C[rows], logp_C[rows], scale_C[rows], part_V)
        for rows, part_V in zip(parts, sums, strict=True)
    ])  # fmt: skip
    for part_V in sums[1:]:
        of_bias_V += part_V
    return logp_C, scale_C


def plain_log_probs(logits_CV: Tensor, bias_V: Tensor, targets_C: Tensor) -> Tensor:
    """`log_probs` in torch's words."""
    logits_CV = logits_CV.to(bias_V.dtype) + bias_V
    return logits_CV.gather(1, targets_C[:, None])[:, 0] - torch.logsumexp(logits_CV, dim=-1)


def plain_gradients(
    logits_CV: Tensor, bias_V: Tensor, targets_C: Tensor, of_bias_V: Tensor
) -> tuple[Tensor, Tensor]:
    """`gradients` in torch's words."""
    biased_CV, target_C1 = logits_CV.to(bias_V.dtype) + bias_V, targets_C[:, None]
    top_C1 = biased_CV.amax(dim=-1, keepdim=True)
    e_CV = torch.exp(biased_CV - top_C1)
    sum_C1 = e_CV.sum(dim=-1, keepdim=True)
    logp_C1 = biased_CV.gather(1, target_C1) - top_C1 - torch.log(sum_C1)
    e_CV.scatter_add_(1, target_C1, -sum_C1)
    of_bias_V += (e_CV / sum_C1).sum(dim=0)
    logits_CV.copy_(e_CV)
    return logp_C1[:, 0], 1 / sum_C1[:, 0]


def _has_kernel(logits_CV: Tensor, bias_V: Tensor) -> bool:
    is_known = logits_CV.dtype in (torch.float32, torch.bfloat16) and bias_V.dtype == torch.float32
    return is_known and logits_CV.device.type == "cpu"


def _parts(logits_CV: Tensor) -> list[slice]:
    """The rows of each thread."""
    count = torch.get_num_threads() if logits_CV.numel() >= _SHARED_FROM else 1
    size = max(1, -(-len(logits_CV) // count))
    return [slice(at, at + size) for at in range(0, max(1, len(logits_CV)), size)]


def _share(kernel: Callable[..., None], calls: list[tuple[Tensor, ...]]) -> None:
    """Run the calls side by side; the first one here."""
    first, *others = [tuple(map(_array, call)) for call in calls]
    if not others:
        return kernel(*first)
    with ThreadPoolExecutor(len(others)) as pool:
        running = [pool.submit(kernel, *call) for call in others]
        kernel(*first)
        for future in running:
            future.result()
    return None


def _array(tensor: Tensor) -> Any:
    """A tensor's memory as NumPy sees it; bfloat16 as int16."""
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy()

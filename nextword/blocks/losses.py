"""The loss of an output layer, Σ -log softmax(x Wᵀ + b)[target], computed together with its gradients.

[IITD-1 "Training a RNN Language Model": cross-entropy of the next word.] With a large vocabulary the logits
are the largest tensor of a model, and they are needed only briefly: here a few rows at a time are computed,
overwritten by their gradient, multiplied into the gradients of x and W, and dropped. Sums are in float32.

The elementwise pass over rows of logits exists in plain torch for any type and device, and as compiled
kernels for float32 and bfloat16 in main memory; the two are interchangeable. Rows are divided among as many
threads as torch uses, always in the same way. For log p alone torch is as fast, and no compiler is loaded.

Parts may add losses of their own, such as the balance between experts or the price of steps: a part calls
`add` in its forward pass, and an objective collects what was added while it read a batch. Where nothing
collects (evaluation, generation), nothing is computed. Such a loss has a weight and a name, under which it is
shown; it is per token, as the loss of a text is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

HELD = 12_000_000  # logits held at once: enough for fast products, few enough to stay in the cache
FUSED_FROM = 1024  # with fewer tokens the plain way is as fast
_SHARED_FROM = 1 << 20  # logits; fewer are one thread's work
_NEAR = 1 << 20  # logits that stay in the cache while they are read several times
_scratch = threading.local()
_collected: ContextVar[dict[str, Tensor] | None] = ContextVar("collected", default=None)


def plain_linear_cross_entropy(
    x_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, targets_N: Tensor, smoothing: float = 0.0
) -> Tensor:
    """Compute the loss the obvious way: all logits, then their log-softmax.

    With label smoothing s the target is (1-s) the token and s spread evenly over all possible tokens.
    """
    logits_NV = torch.addmm(bias_V, x_ND, weight_VD[: len(bias_V)].T)
    logp_NV = torch.log_softmax(logits_NV.to(_sum_type(logits_NV)), dim=-1)
    loss_N = -logp_NV.gather(1, targets_N[:, None])[:, 0]
    if smoothing:
        even_N = -logp_NV[:, torch.isfinite(bias_V)].mean(dim=-1)
        loss_N = (1 - smoothing) * loss_N + smoothing * even_N
    return loss_N.sum()


def linear_cross_entropy(
    x_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, targets_N: Tensor, smoothing: float = 0.0
) -> Tensor:
    """Compute Σ -log p(target), fused where that is faster. ``bias_V`` is -inf for impossible tokens.

    ``weight_VD`` may have more rows than there are tokens; the gradient of those is 0.
    """
    if len(bias_V) < FUSED_FROM or len(x_ND) == 0:
        return plain_linear_cross_entropy(x_ND, weight_VD, bias_V, targets_N, smoothing)
    return fused_linear_cross_entropy(x_ND, weight_VD, bias_V, targets_N, smoothing)


def fused_linear_cross_entropy(
    x_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, targets_N: Tensor, smoothing: float = 0.0
) -> Tensor:
    """Compute `linear_cross_entropy` in chunks of rows, whatever the size."""
    if torch.is_grad_enabled() and (x_ND.requires_grad or weight_VD.requires_grad):
        loss: Tensor = _Fused.apply(x_ND, weight_VD, bias_V, targets_N)  # type: ignore[no-untyped-call]
    else:
        loss = -linear_log_probs(x_ND, weight_VD, bias_V, targets_N).sum()
    return loss + smoothing * _above_mean(x_ND, weight_VD, bias_V, targets_N) if smoothing else loss


def linear_log_probs(x_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, targets_N: Tensor) -> Tensor:
    """Return log p of each target, a few rows at a time; without a gradient."""
    x_ND, weight_VD, bias_V = _as_computed(x_ND, weight_VD, bias_V)
    logp_N = torch.empty(len(x_ND), dtype=_sum_type(x_ND), device=x_ND.device)
    for rows in _chunks(len(x_ND), len(bias_V)):
        logits_CV = _logits(x_ND[rows], weight_VD)
        logp_N[rows] = row_log_probs(logits_CV, bias_V, targets_N[rows])
    return logp_N


class _Fused(torch.autograd.Function):
    """Compute the gradients in the forward pass; the backward pass only scales them."""

    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, targets_N: Tensor) -> Tensor:
        gradients = _Gradients(x_ND, weight_VD, bias_V)
        logp = gradients.of_bias_V.new_zeros(())
        with torch.autocast(x_ND.device.type, enabled=False):
            for rows in _chunks(len(x_ND), len(bias_V)):
                logp += gradients.add(rows, targets_N[rows])
        ctx.made = gradients.finished(x_ND, weight_VD)
        return -logp

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Any:
        assert ctx.made is not None, "this loss can be differentiated once"
        made, ctx.made = ctx.made, None  # so that nothing else holds them and they become .grad uncopied
        if float(outer) != 1.0:
            made = [gradient.mul_(outer) for gradient in made]
        return (*made, None)


class _Gradients:
    """The sums over the chunks: grad_x, grad_W, grad_b."""

    def __init__(self, x_ND: Tensor, weight_VD: Tensor, bias_V: Tensor) -> None:
        self.x_ND, self.weight_VD, self.bias_V = _as_computed(x_ND, weight_VD, bias_V)
        V, D, total = len(bias_V), x_ND.shape[1], _sum_type(x_ND)
        self.of_x_ND = torch.empty_like(self.x_ND)
        self.of_weight_VD = torch.empty(len(weight_VD), D, dtype=total, device=x_ND.device)
        self.of_weight_VD[V:] = 0.0
        self.of_bias_V = torch.zeros(V, dtype=total, device=x_ND.device)
        self._is_first = True

    def add(self, rows: slice, targets_C: Tensor) -> Tensor:
        """Add one chunk and return its Σ log p."""
        x_CD = self.x_ND[rows]
        logits_CV = _logits(x_CD, self.weight_VD)
        logp_C, scale_C = row_gradients(logits_CV, self.bias_V, targets_C, self.of_bias_V)
        # Every row is s (p - one-hot): the 1/s goes to the smaller side of the products.
        scale_C1 = scale_C[:, None]
        torch.mm(logits_CV, self.weight_VD, out=self.of_x_ND[rows])
        self.of_x_ND[rows] *= scale_C1
        self._add_weight(logits_CV, (x_CD * scale_C1).to(x_CD.dtype))
        return logp_C.sum()

    def _add_weight(self, rows_CV: Tensor, x_CD: Tensor) -> None:
        sum_VD = self.of_weight_VD[: rows_CV.shape[1]]
        if sum_VD.dtype != x_CD.dtype:
            part_VD = rows_CV.T @ x_CD
            sum_VD.copy_(part_VD) if self._is_first else sum_VD.add_(part_VD)
        elif self._is_first:
            torch.mm(rows_CV.T, x_CD, out=sum_VD)
        else:
            sum_VD.addmm_(rows_CV.T, x_CD)
        self._is_first = False

    def finished(self, x_ND: Tensor, weight_VD: Tensor) -> list[Tensor]:
        """Return the gradients in the types of x, W and b."""
        return [self.of_x_ND.to(x_ND.dtype), self.of_weight_VD.to(weight_VD.dtype), self.of_bias_V]


def _as_computed(x_ND: Tensor, weight_VD: Tensor, bias_V: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Convert to the type of the products (the weights', or autocast's); the bias to the sums' type."""
    device = x_ND.device.type
    kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight_VD.dtype
    weight_VD = weight_VD.detach()[: len(bias_V)]
    return x_ND.detach().to(kind), weight_VD.to(kind), bias_V.detach().to(_sum_type(weight_VD))


def _sum_type(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _chunks(count: int, words: int) -> list[slice]:
    """Split the rows into equal chunks, as few as the limit allows."""
    number = -(-count // max(1, HELD // words))
    size = -(-count // number) if number else 1
    return [slice(at, at + size) for at in range(0, count, size)]


def _logits(x_CD: Tensor, weight_VD: Tensor) -> Tensor:
    """Compute x Wᵀ in reused memory: fresh memory costs a page fault every 4 kB."""
    size = len(x_CD) * len(weight_VD)
    held: Tensor | None = getattr(_scratch, "held", None)
    if held is None or held.numel() < size or held.dtype != x_CD.dtype or held.device != x_CD.device:
        with torch.inference_mode(False):  # if first needed in evaluation, it must work in training too
            held = _scratch.held = torch.empty(size, dtype=x_CD.dtype, device=x_CD.device)
    logits_CV = held[:size].view(len(x_CD), len(weight_VD))
    return torch.mm(x_CD, weight_VD.T, out=logits_CV)


def _above_mean(x_ND: Tensor, weight_VD: Tensor, bias_V: Tensor, targets_N: Tensor) -> Tensor:
    """Compute Σ (target's logit - mean logit of the possible tokens): what label smoothing adds, times s.

    (1-s)(z - l) + s(z - mean) = (z - l) + s(l - mean), with z the log of the normalizer and l the logit.
    """
    possible_V = torch.isfinite(bias_V)
    share_V = possible_V.to(weight_VD.dtype) / possible_V.sum()
    mean_D = share_V @ weight_VD[: len(bias_V)]
    bias_V = torch.where(possible_V, bias_V, 0.0)
    above_ND = weight_VD[targets_N] - mean_D
    return (x_ND.to(above_ND.dtype) * above_ND).sum() + (bias_V[targets_N] - share_V @ bias_V).sum()


def row_log_probs(logits_CV: Tensor, bias_V: Tensor, targets_C: Tensor) -> Tensor:
    """Return log p of each row's target, a few rows at a time; the logits may be overwritten."""
    logp_C = torch.empty(len(logits_CV), dtype=bias_V.dtype, device=bias_V.device)
    size = max(1, _NEAR // len(bias_V))
    for at in range(0, len(logits_CV), size):
        rows = slice(at, at + size)
        biased_RV = logits_CV[rows].to(bias_V.dtype).add_(bias_V)
        logp_C[rows] = -F.cross_entropy(biased_RV, targets_C[rows], reduction="none")
    return logp_C


def row_gradients(
    logits_CV: Tensor, bias_V: Tensor, targets_C: Tensor, of_bias_V: Tensor
) -> tuple[Tensor, Tensor]:
    """Turn each row into s (p - one-hot); return log p of the targets and 1/s.

    The gradient of the bias, Σ (p - one-hot), is added to ``of_bias_V``.
    """
    if not _has_kernel(logits_CV, bias_V):
        return plain_row_gradients(logits_CV, bias_V, targets_C, of_bias_V)
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


def plain_row_log_probs(logits_CV: Tensor, bias_V: Tensor, targets_C: Tensor) -> Tensor:
    """Compute `row_log_probs` in plain torch."""
    logits_CV = logits_CV.to(bias_V.dtype) + bias_V
    return logits_CV.gather(1, targets_C[:, None])[:, 0] - torch.logsumexp(logits_CV, dim=-1)


def plain_row_gradients(
    logits_CV: Tensor, bias_V: Tensor, targets_C: Tensor, of_bias_V: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute `row_gradients` in plain torch."""
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
    """Return the rows of each thread."""
    count = torch.get_num_threads() if logits_CV.numel() >= _SHARED_FROM else 1
    size = max(1, -(-len(logits_CV) // count))
    return [slice(at, at + size) for at in range(0, max(1, len(logits_CV)), size)]


def _share(kernel: Callable[..., None], calls: list[tuple[Tensor, ...]]) -> None:
    """Run the calls in parallel, the first one in this thread."""
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
    """View a tensor's memory as a NumPy array; bfloat16 as int16."""
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


@contextmanager
def collecting() -> Iterator[dict[str, Tensor]]:
    """Collect, while it lasts, what parts add: name -> weighted loss per token."""
    found: dict[str, Tensor] = {}
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def add(name: str, weight: float, loss: Callable[[], Tensor]) -> None:
    """Add a loss, if it is collected and has a weight; only then is it computed."""
    found = _collected.get()
    if found is not None and weight:
        value = weight * loss()
        found[name] = found[name] + value if name in found else value


def joined(loss: Tensor, found: Mapping[str, Tensor], tokens: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Return a loss summed over ``tokens`` with those of the parts, and these by name, summed as well."""
    parts = {name: value * tokens for name, value in found.items()}
    return sum(parts.values(), loss), parts

"""Matrices packed for their products, for a network that is only used: products of several rows are faster.

A library that is given a plain matrix packs it again in every call, which costs as much as the product where
a batch has few rows. The weights themselves are kept: gradients use them, and single rows with oneDNN.
Matrices are packed for oneDNN or, where one thread computes on a processor with AVX2 or AVX-512, for a loop
of our own, which is faster for few rows and for a single one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.heads import SoftmaxHead

_ROWS = 64  # rows that matrices are packed for; others are nearly as fast
_LOGITS = 1 << 20  # logits that are held at once to score tokens


class PackedMatrix:
    """``x Wᵀ + b`` of float32 on a processor; packed when it is first used."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        self.weight_OI, self.bias_O = weight_OI.detach(), bias_O
        self.packed: Tensor | None = None
        self.panels: Panels | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Return the product over the last axis."""
        if uses_panels():
            self.panels = self.panels or Panels(self.weight_OI, self.bias_O)
            return self.panels(x)
        if x.numel() == x.shape[-1]:
            return F.linear(x, self.weight_OI, self.bias_O)
        if self.packed is None:
            self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight_OI.contiguous(), _ROWS)
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias_O, "none", [], "")
        return y

    def __deepcopy__(self, memo: Any) -> None:
        """Return nothing: a copy of a network may be trained, and then multiplies by its weights."""


class Panels:
    """The same product by the compiled loop of `product_kernel`: a row has the same bits in every batch."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        from nextword.blocks.product_kernel import in_panels, multiply

        self.multiply, (self.width, self.depth) = multiply, weight_OI.shape
        bias = None if bias_O is None else bias_O.detach().numpy()
        self.panels, self.bias = in_panels(weight_OI.numpy(), bias)
        self.places = self.panels.ctypes.data, self.bias.ctypes.data

    def __call__(self, x: Tensor) -> Tensor:
        """Return the product over the last axis."""
        x = x.contiguous()
        y = x.new_empty(*x.shape[:-1], self.width)
        rows = x.numel() // self.depth
        self.multiply(x.data_ptr(), rows, self.depth, *self.places, y.data_ptr(), self.width)
        return y

    def __deepcopy__(self, memo: Any) -> None:
        """Return nothing: addresses are of these arrays, and a copy of a network may be trained."""


def uses_panels() -> bool:
    """Tell whether products of packed networks are our own loop's at the moment."""
    return torch.get_num_threads() == 1 and prefers_panels()


@cache
def prefers_panels() -> bool:
    """Tell whether our own loop is the faster one here: it is written for registers of AVX2 and AVX-512."""
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    return bool(features.get("avx2") and features.get("fma"))


class PackedLinear(nn.Linear):
    """A linear part with a packed matrix."""

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        self.product: PackedMatrix | None = PackedMatrix(linear.weight, linear.bias)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        """Return x Wᵀ + b."""
        if self.product is None or torch.is_grad_enabled():
            return F.linear(input, self.weight, self.bias)
        return self.product(input)


class PackedHead(SoftmaxHead):
    """A softmax head with a packed matrix."""

    def __init__(self, head: SoftmaxHead) -> None:
        nn.Module.__init__(self)
        self.take_weights(head)
        bias_V = (head.bias_V + head.closed_V).detach()
        self.product: PackedMatrix | None = PackedMatrix(head.weight_VD[: head.vocab_size], bias_V)

    def logits(self, features_ND: Tensor) -> Tensor:
        """Return the logits; a forbidden token has -inf."""
        if self.product is None or torch.is_grad_enabled():
            return super().logits(features_ND)
        return self.product(features_ND)

    def log_probs(self, features_BD: Tensor) -> Tensor:
        """Return log p of every token."""
        return normalized(self.logits(features_BD))

    def score(self, features_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Return log p of these tokens, by the product that gives them to who asks for all."""
        if self.product is None or torch.is_grad_enabled() or not uses_panels():
            return super().score(features_ND, ids_N)
        logp_N, size = features_ND.new_empty(len(ids_N)), max(1, _LOGITS // self.vocab_size)
        for first in range(0, len(ids_N), size):
            part = slice(first, first + size)
            logp_N[part] = self.log_probs(features_ND[part]).gather(1, ids_N[part, None])[:, 0]
        return logp_N


def normalized(logits_NV: Tensor) -> Tensor:
    """Return log softmax of logits that nobody else uses; one thread computes it in their place."""
    if torch.is_grad_enabled() or torch.get_num_threads() > 1:
        return torch.log_softmax(logits_NV, dim=-1)
    from nextword.blocks.softmax_kernel import normalize

    normalize(logits_NV.numpy())
    return logits_NV


@cache
def can_pack() -> bool:
    """Tell whether this machine's torch has such products."""
    weight_OI, x_NI = torch.eye(8) + 1, torch.arange(24.0).view(3, 8)
    try:
        y_NO = PackedMatrix(weight_OI, torch.ones(8))(x_NI)
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return bool(torch.allclose(y_NO, F.linear(x_NI, weight_OI, torch.ones(8))))


@torch.no_grad()
def pack(network: nn.Module) -> None:
    """Replace linear parts and softmax heads of a network in float32 on a processor."""
    first = next(network.parameters())
    if first.device.type != "cpu" or first.dtype != torch.float32 or not can_pack():
        return
    for parent in [*network.modules()]:
        for name, part in [*parent.named_children()]:
            if type(part) is nn.Linear:
                setattr(parent, name, PackedLinear(part))
            elif type(part) is SoftmaxHead:
                setattr(parent, name, PackedHead(part))

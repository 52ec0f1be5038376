"""Products in 8 bits, for a network that is only used: weights and inputs are rounded to int8.

w ≈ s q with one scale s for each output; x ≈ r q with one scale r for each row of inputs, so that a row does
not depend on its neighbours; sums are exact in 32 bits. The matrices of linear parts and of the softmax head
are replaced. Embeddings, norms, attention's products with the cache and recurrent cells stay in float32, and
the weights themselves are kept. The product is torch's own of two int8 tensors, or oneDNN's on processors
for which torch's is a plain loop: nothing here needs `torch.ao` or quantized tensors, which are to be removed
from torch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nextword.blocks.cells import Cell
from nextword.blocks.heads import SoftmaxHead
from nextword.blocks.packed import PackedHead, PackedLinear, normalized

_LEAST = 1e-30  # the largest number of a row, at least: a row of zeros has a scale, too
_ROWS = 256  # rows of logits that are held at once
_SHIFT = 128  # from -128 … 127 to 0 … 255

Sums = Callable[[Tensor], Tensor]  # rows of inputs in int8 -> their products with a matrix in int8


@cache
def shifts() -> bool:
    """Tell whether oneDNN multiplies inputs that are shifted to 0 … 255: where torch has only a loop.

    Torch's product of two int8 tensors is compiled for processors with VNNI; on others it takes many
    times as long as one in float32.
    """
    try:
        if torch.cpu._is_vnni_supported():
            return False
        found_NO = _shifted(torch.eye(8, dtype=torch.int8))(torch.eye(8, dtype=torch.int8))
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return torch.equal(found_NO, torch.eye(8))


def _shifted(q_OI: Tensor) -> Sums:
    """Return oneDNN's product with a matrix in int8; sums are whole numbers in float32."""
    packed = torch.ops.onednn.qlinear_prepack(q_OI, None)
    ones_O, zeros_O = torch.ones(len(q_OI)), torch.zeros(len(q_OI), dtype=torch.int64)
    rest: tuple[Any, ...] = packed, ones_O, zeros_O, None, 1.0, 0, torch.float32, "none", [], ""

    def product(q_NI: Tensor) -> Tensor:
        shifted_NI = q_NI.view(torch.uint8) ^ _SHIFT
        sums_NO: Tensor = torch.ops.onednn.qlinear_pointwise(shifted_NI, 1.0, _SHIFT, *rest)
        return sums_NO

    return product


def _sums(q_OI: Tensor) -> Sums:
    """Return this machine's product with a matrix in int8."""
    return _shifted(q_OI) if shifts() else lambda q_NI: torch._int_mm(q_NI, q_OI.T)


@cache
def find_steps() -> int:
    """Return how many steps above 0 a weight may have so that sums are exact on this machine; 0: none.

    Processors without VNNI add two products in 16 bits, which only smaller weights never overflow.
    """
    for steps in (127, 63):
        most_NI = torch.full((3, 64), 127, dtype=torch.int8)
        weight_OI = torch.full((32, 64), steps, dtype=torch.int8)
        try:
            product = _sums(weight_OI)
            sums = product(most_NI), product(-most_NI)
        except (RuntimeError, AttributeError, NotImplementedError):
            return 0
        expected = 64 * 127 * steps
        if bool((sums[0] == expected).all()) and bool((sums[1] == -expected).all()):
            return steps
    return 0


class Int8Matrix:
    """A matrix in int8, made from one in float32."""

    def __init__(self, weight_OI: Tensor, steps: int, bias_O: Tensor | None = None) -> None:
        self.bias_O = weight_OI.new_zeros(len(weight_OI)) if bias_O is None else bias_O.detach()
        self.scale_O = weight_OI.float().abs().amax(dim=1).clamp(min=_LEAST) / steps
        self.q_OI = torch.round(weight_OI / self.scale_O[:, None]).to(torch.int8).contiguous()
        self.sums = _sums(self.q_OI)

    def __call__(self, x_NI: Tensor) -> Tensor:
        """Return ``x Wᵀ + b``: ``y_NO`` in float32."""
        from nextword.models.int8_kernels import round_rows, scale_sums

        x = x_NI.detach().float().contiguous().numpy()
        q_NI, scale_N = torch.empty(x.shape, dtype=torch.int8), torch.empty(len(x))
        round_rows(x, x.view(np.int32), q_NI.numpy(), scale_N.numpy())
        sums_NO = self.sums(q_NI)
        y_NO = torch.empty(sums_NO.shape)
        parts = (sums_NO, scale_N, self.scale_O, self.bias_O, y_NO)
        scale_sums(*(part.numpy() for part in parts))
        return y_NO


class Int8Linear(nn.Linear):
    """A linear part whose product is in int8."""

    def __init__(self, linear: nn.Linear, steps: int) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight, self.bias = linear.weight, linear.bias
        self.product = Int8Matrix(linear.weight.detach(), steps, linear.bias)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - torch's name
        """Return x Wᵀ + b."""
        y_NO = self.product(input.reshape(-1, self.in_features))
        return y_NO.view(*input.shape[:-1], self.out_features)


class Int8Head(SoftmaxHead):
    """A softmax head whose product is in int8; the softmax is in float32."""

    def __init__(self, head: SoftmaxHead, steps: int) -> None:
        nn.Module.__init__(self)
        self.take_weights(head)
        bias_V = head.bias_V + head.closed_V
        self.product = Int8Matrix(head.weight_VD[: head.vocab_size].detach(), steps, bias_V)

    def logits(self, features_ND: Tensor) -> Tensor:
        """Return the logits; a forbidden token has -inf."""
        return self.product(features_ND)

    def log_probs(self, features_BD: Tensor) -> Tensor:
        """Return log p of every token."""
        return normalized(self.logits(features_BD))

    def score(self, features_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Return log p of these tokens, a few rows at a time."""
        parts = zip(torch.split(features_ND, _ROWS), torch.split(ids_N, _ROWS), strict=True)
        found = [self.log_probs(some_ND).gather(1, some_N[:, None])[:, 0] for some_ND, some_N in parts]
        return torch.cat(found) if found else features_ND.new_zeros(0)


@torch.no_grad()
def use_int8(network: nn.Module) -> str:
    """Replace the matrices of a network that is only used; return a sentence where that is not possible."""
    if next(network.parameters()).device.type != "cpu":
        return "int8 products are for processors, so this network computes in fp32 on its device"
    steps = find_steps()
    if not steps:
        return "this machine has no exact int8 products, so the network computes in fp32"
    for parent in [*network.modules()]:
        if isinstance(parent, Cell):  # its matrices are multiplied within one operator for all positions
            continue
        for name, part in [*parent.named_children()]:
            if type(part) is nn.Linear or isinstance(part, PackedLinear):
                setattr(parent, name, Int8Linear(part, steps))
            elif type(part) is SoftmaxHead or isinstance(part, PackedHead):
                setattr(parent, name, Int8Head(part, steps))
    return ""

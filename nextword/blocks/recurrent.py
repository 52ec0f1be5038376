"""Recurrent layers over all positions at once, as fast as a CPU allows; slot "cell".

Each is a cell of `blocks.cells` with the same weights and another `read`, its forward pass: the cell's own,
step by step, is the plain reference that a test compares with. [IITD-1 "RNN Language Models": the same
weights at every step]
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nextword.blocks.cells import (
    Cell,
    CellState,
    GRUCell,
    LSTMCell,
    MinGRUCell,
    RNNCell,
    TorchGRUCell,
    by_steps,
)
from nextword.blocks.dropout import drop_weight
from nextword.blocks.packed import PackedLinear, Panels, uses_panels
from nextword.blocks.scan import scan
from nextword.blocks.through_time import (
    GRUFunction,
    LSTMFunction,
    RNNFunction,
    TorchGRUFunction,
    product_type,
)
from nextword.system import processor, threads


def after_last(h_TBH: Tensor, h_BH: Tensor, lengths_B: Tensor | None) -> Tensor:
    """Return the state after each row's last real token; ``h_BH``, the state before, where a row has none."""
    if lengths_B is None:
        return h_TBH[-1]
    rows_B = torch.arange(len(lengths_B), device=h_TBH.device)
    last_BH = h_TBH[(lengths_B - 1).clamp(min=0), rows_B]
    return torch.where(lengths_B[:, None] > 0, last_BH, h_BH)


def is_fused(x: Tensor) -> bool:
    """Tell whether oneDNN has an LSTM for products of this type on this machine."""
    kind = product_type(x)
    if kind == torch.bfloat16:
        return processor.find_out().bf16 == "works"
    return kind == torch.float32 and bool(torch._C._has_mkldnn)


def identity(weight: Tensor) -> tuple[int, int]:
    """Return where a weight is and how often it was changed in place, as far as torch counts it."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version


class FastLayer(Cell):
    """What the layers below share: weight drop, and a fast single step without a gradient."""

    weight_drop: float = 0.0  # share of the weights from state to state dropped in training

    def dropped(self, linear: nn.Linear) -> Tensor:
        """Return a recurrent weight, some of it dropped in training."""
        return drop_weight(linear.weight, self.weight_drop if self.training else 0.0)

    def read(
        self, x_TBE: Tensor, state: CellState, lengths_B: Tensor | None = None
    ) -> tuple[Tensor, CellState]:
        """Run the forward pass: ``h_TBH`` and the state after each row's last real token.

        Where steps multiply by panels, prompts are read by them: other products round each number of rows
        in another way.
        """
        if torch.is_grad_enabled():
            return self.read_all(x_TBE, state, lengths_B)
        if len(x_TBE) == 1 and lengths_B is None:
            after = self.step(x_TBE[0], state)
            return after[0][None], after
        if any(isinstance(part, PackedLinear) for part in self.children()) and uses_panels():
            return by_steps(self.step, x_TBE, state, lengths_B)
        return self.read_all(x_TBE, state, lengths_B)

    def step(self, x_BE: Tensor, state: CellState) -> CellState:
        """Read one token without a gradient, as in generation."""
        after: CellState = self(x_BE, state)
        return after

    def read_all(self, x_TBE: Tensor, state: CellState, lengths_B: Tensor | None) -> tuple[Tensor, CellState]:
        """Run the forward pass over all positions at once."""
        raise NotImplementedError


class RNN(FastLayer, RNNCell):
    """The vanilla recurrent layer."""

    def read_all(self, x_TBE: Tensor, state: CellState, lengths_B: Tensor | None) -> tuple[Tensor, CellState]:
        """Run the forward pass over all positions at once."""
        (h_BH,) = state
        x_to_h, h_weight = self.x_to_h, self.dropped(self.h_to_h)
        h_TBH = RNNFunction.apply(x_TBE, h_BH, x_to_h.weight, x_to_h.bias, h_weight, self.activation)  # type: ignore[no-untyped-call]
        return h_TBH, (after_last(h_TBH, h_BH, lengths_B),)


class LSTM(FastLayer, LSTMCell):
    """The LSTM layer: oneDNN's fused one, which is as fast as its matrix products; else our own."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.register_buffer("no_bias_G", torch.zeros(4 * hidden), persistent=False)

    no_bias_G: Tensor
    _packed: tuple[tuple[int, ...], Tensor, Tensor] | None = None
    _panels: Panels | None = None

    def step(self, x_BE: Tensor, state: CellState) -> CellState:
        """Step with one product for x and h together and one sigmoid for all gates: tanh(a) = 2 σ(2a) - 1."""
        if self.training:
            return super().step(x_BE, state)
        h_BH, c_BH = state
        gates_BG = self._product(torch.cat([x_BE, h_BH], dim=1)).sigmoid_()
        i, f, half, o = gates_BG.chunk(4, dim=-1)
        c_BH = torch.addcmul(f * c_BH, i, half, value=2.0).sub_(i)  # f ∘ c + i ∘ (2 half - 1)
        return torch.tanh(c_BH).mul_(o), c_BH

    def _product(self, x_BX: Tensor) -> Tensor:
        """Multiply by all weights at once, in a packed network by panels of them."""
        weight_XG, bias_G = self._pack()
        if not isinstance(self._modules["x_to_gates"], PackedLinear) or not uses_panels():
            return torch.addmm(bias_G, x_BX, weight_XG)
        self._panels = self._panels or Panels(weight_XG.T.contiguous(), bias_G)
        return self._panels(x_BX)

    def _pack(self) -> tuple[Tensor, Tensor]:
        """Return all weights in one matrix, made again when they have changed."""
        modules: Any = self._modules  # needed at every token, so not by slow attributes
        x_to, h_to = modules["x_to_gates"]._parameters, modules["h_to_gates"]._parameters
        x_weight, h_weight, bias = x_to["weight"], h_to["weight"], x_to["bias"]
        key = (*identity(x_weight), *identity(h_weight), *identity(bias))
        if self._packed is None or self._packed[0] != key:
            H = self.hidden
            weight_XG = torch.cat([x_weight, h_weight], dim=1).T.contiguous()
            bias_G = bias.clone()
            weight_XG[:, 2 * H : 3 * H] *= 2.0
            bias_G[2 * H : 3 * H] *= 2.0
            self._packed, self._panels = (key, weight_XG, bias_G), None
        return self._packed[1:]

    def train(self, mode: bool = True) -> LSTM:
        """Drop the packed weights: training changes them."""
        self._packed = self._panels = None
        return super().train(mode)

    def read_all(self, x_TBE: Tensor, state: CellState, lengths_B: Tensor | None) -> tuple[Tensor, CellState]:
        """Run all positions at once; ragged rows use our own: the fused layer returns the last cell only."""
        h_BH, c_BH = state
        x_to_gates, h_weight = self.x_to_gates, self.dropped(self.h_to_gates)
        if lengths_B is None and is_fused(x_TBE):
            weights = [x_to_gates.weight, h_weight, x_to_gates.bias, self.no_bias_G]
            with threads.while_free(len(h_BH)):
                h_TBH, h_1BH, c_1BH = torch._VF.lstm(
                    x_TBE, (h_BH[None], c_BH[None]), weights, True, 1, 0.0, self.training, False, False
                )
            return h_TBH, (h_1BH[0].to(h_BH.dtype), c_1BH[0].to(c_BH.dtype))
        h_TBH, c_TBH = LSTMFunction.apply(x_TBE, h_BH, c_BH, x_to_gates.weight, x_to_gates.bias, h_weight)  # type: ignore[no-untyped-call]
        return h_TBH, (after_last(h_TBH, h_BH, lengths_B), after_last(c_TBH, c_BH, lengths_B))


class GRU(FastLayer, GRUCell):
    """The slide's GRU layer."""

    def read_all(self, x_TBE: Tensor, state: CellState, lengths_B: Tensor | None) -> tuple[Tensor, CellState]:
        """Run the forward pass over all positions at once."""
        (h_BH,) = state
        gates, new = self.dropped(self.h_to_gates), self.dropped(self.h_to_new)
        h_TBH = GRUFunction.apply(x_TBE, h_BH, self.x_to_all.weight, self.x_to_all.bias, gates, new)  # type: ignore[no-untyped-call]
        return h_TBH, (after_last(h_TBH, h_BH, lengths_B),)


class TorchGRU(FastLayer, TorchGRUCell):
    """The library's GRU layer."""

    def read_all(self, x_TBE: Tensor, state: CellState, lengths_B: Tensor | None) -> tuple[Tensor, CellState]:
        """Run the forward pass over all positions at once."""
        (h_BH,) = state
        x_to, h_weight, h_bias = self.x_to_gates, self.dropped(self.h_to_gates), self.h_to_gates.bias
        h_TBH = TorchGRUFunction.apply(x_TBE, h_BH, x_to.weight, x_to.bias, h_weight, h_bias)  # type: ignore[no-untyped-call]
        return h_TBH, (after_last(h_TBH, h_BH, lengths_B),)


class MinGRU(FastLayer, MinGRUCell):
    """The minimal GRU layer: gates of all positions first, then a scan."""

    def read_all(self, x_TBE: Tensor, state: CellState, lengths_B: Tensor | None) -> tuple[Tensor, CellState]:
        """Run the forward pass over all positions at once."""
        (h_BH,) = state
        z_TBH, new_TBH = self.x_to_all(x_TBE).chunk(2, dim=-1)
        z_TBH = torch.sigmoid(z_TBH.to(h_BH.dtype))
        h_TBH = scan(1 - z_TBH, z_TBH * new_TBH, h_BH)
        return h_TBH, (after_last(h_TBH, h_BH, lengths_B),)

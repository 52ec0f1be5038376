"""Recurrent and linear mixers in the place of attention (slot "mixer"): a state of fixed size, whatever the
length.

"Delete all RNN components" [MAUSAM "Transformers (2017) Made Many Changes at Once!"]: here they are, in the
same block, so that attention is compared and nothing else. "Long sequences" [MAUSAM "What is missing in
Transformers"]: a token costs the same, however many came before it.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.cache import Memory, Reading
from nextword.blocks.cells import Cell
from nextword.blocks.convolution import empty_tail, with_tail
from nextword.blocks.cost import Cost, Load, linear
from nextword.blocks.positions import NoPosition
from nextword.blocks.roles import Role, Roles
from nextword.blocks.scan import scan
from nextword.blocks.shape import Shape
from nextword.core.catalog import find
from nextword.core.contracts import State
from nextword.core.errors import ConfigError


def refuse_both_sides(shape: Shape, name: str) -> None:
    """Raise where a mixer that only looks back is to see a whole text."""
    if not shape.causal:
        raise ConfigError(
            f"'model.mixer' is '{name}', which looks back only, but an encoder sees both sides; choose "
            "attention or a convolution"
        )


class FixedState(nn.Module):
    """A mixer that remembers a state of fixed size, not keys: it has no scores and no heads to weigh."""

    adds_positions: ClassVar[bool] = False
    weighs: ClassVar[bool] = False
    has_heads: ClassVar[bool] = False
    norms_queries: ClassVar[bool] = False
    bounded: ClassVar[bool] = True  # its state does not grow


class CellMixer(FixedState):
    """A recurrent layer (slot "cell") and an output matrix."""

    cell: ClassVar[str] = "lstm"
    matrices: ClassVar[int] = 8  # of the cell, from width to width
    biases: ClassVar[int] = 4
    roles: ClassVar[Roles] = {"out": Role.OUT}

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        refuse_both_sides(shape, self.cell)
        self.layer: Cell = find("cell", self.cell)(shape.width, shape.width)
        self.out = nn.Linear(shape.width, shape.width, shape.bias)
        self.width = shape.width

    def start(self, batch: int, source: Memory | None = None) -> State:
        """Return a state of zeros."""
        return tuple(self.out.weight.new_zeros(batch, self.width) for _ in range(self.layer.parts))

    def forward(self, x_BTD: Tensor, state: State, reading: Reading, skip: int = 0) -> tuple[Tensor, State]:
        """Read the tokens in their order."""
        lengths_B = None if reading.is_full else torch.tensor(reading.lengths, device=x_BTD.device)
        h_TBD, state = self.layer.read(x_BTD.transpose(0, 1), state, lengths_B)
        y_BTD: Tensor = self.out(h_TBD.transpose(0, 1)[:, skip:])
        return y_BTD, state

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count the cell's matrices and biases, and the output matrix."""
        square = cls.matrices * shape.width**2
        own = Cost(square + cls.biases * shape.width, square * load.tokens)
        return own + linear(shape.width, shape.width, load.tokens, shape.bias)


class LSTMMixer(CellMixer):
    """An LSTM in place of attention."""


class GRUMixer(CellMixer):
    """A GRU in place of attention."""

    cell = "gru"
    matrices = 6
    biases = 3


class MinGRUMixer(CellMixer):
    """A minimal GRU in place of attention: h = (1 - z) h + z h̃, gates of the input (Feng et al. 2024)."""

    cell = "mingru"
    matrices = 2
    biases = 2


class GatedScan(FixedState):
    """What mixers share whose recurrence is c = f ∘ c + b, f and b from the inputs: computed as a scan."""

    roles: ClassVar[Roles] = {"out": Role.OUT}
    gates: ClassVar[int] = 3  # vectors that are computed from each input
    places: ClassVar[int] = 1  # inputs that they are computed from: this one and those before it

    def __init__(self, shape: Shape, position: NoPosition) -> None:
        super().__init__()
        refuse_both_sides(shape, type(self).__name__.lower())
        self.width = shape.width
        self.from_x = nn.Linear(self.places * shape.width, self.gates * shape.width)
        self.out = nn.Linear(shape.width, shape.width, shape.bias)

    def start(self, batch: int, source: Memory | None = None) -> State:
        """Return zeros, and an empty past."""
        weight = self.out.weight
        return weight.new_zeros(batch, self.width), empty_tail(weight, batch, self.places - 1, self.width)

    def forward(self, x_BTD: Tensor, state: State, reading: Reading, skip: int = 0) -> tuple[Tensor, State]:
        """Compute all gates at once, then scan."""
        (c_BD, tail), T = state, x_BTD.shape[1]
        joined_BXD, tail = with_tail(x_BTD, tail, reading)
        seen = [joined_BXD[:, at : at + T] for at in range(self.places)]
        gates = self.from_x(torch.cat(seen, dim=-1)).float().chunk(self.gates, dim=-1)
        f_BTD, b_BTD = self.step_of(*gates)
        if not reading.is_full:  # what is not a token leaves the state as it is
            real_BT1 = reading.real()[..., None]
            f_BTD, b_BTD = f_BTD.masked_fill(~real_BT1, 1.0), b_BTD.masked_fill(~real_BT1, 0.0)
        c_TBD = scan(f_BTD.transpose(0, 1).contiguous(), b_BTD.transpose(0, 1).contiguous(), c_BD)
        h_BTD = self.output(c_TBD.transpose(0, 1), x_BTD, *gates)
        y_BTD: Tensor = self.out(h_BTD[:, skip:].to(x_BTD.dtype))
        return y_BTD, (c_TBD[-1], tail)

    def step_of(self, *gates: Tensor) -> tuple[Tensor, Tensor]:
        """Return f and b."""
        raise NotImplementedError

    def output(self, c_BTD: Tensor, x_BTD: Tensor, *gates: Tensor) -> Tensor:
        """Return what the mixer gives, from the cells."""
        raise NotImplementedError

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count both matrices; the scan is element by element."""
        into = linear(cls.places * shape.width, cls.gates * shape.width, load.tokens, bias=True)
        return into + linear(shape.width, shape.width, load.tokens, shape.bias)


class SRU(GatedScan):
    """c = f ∘ c + (1 - f) ∘ x̃, h = r ∘ c + (1 - r) ∘ x: gates from the input alone (Lei et al. 2018)."""

    def step_of(self, *gates: Tensor) -> tuple[Tensor, Tensor]:
        """Keep f of the cell."""
        new_BTD, f_BTD, _ = gates
        f_BTD = torch.sigmoid(f_BTD)
        return f_BTD, (1 - f_BTD) * new_BTD

    def output(self, c_BTD: Tensor, x_BTD: Tensor, *gates: Tensor) -> Tensor:
        """Mix cell and input."""
        r_BTD = torch.sigmoid(gates[2])
        return torch.lerp(x_BTD.float(), c_BTD, r_BTD)


class QRNN(GatedScan):
    """c = f ∘ c + (1 - f) ∘ z, h = o ∘ c; z, f, o from this input and the last (Bradbury et al. 2017)."""

    places = 2

    def step_of(self, *gates: Tensor) -> tuple[Tensor, Tensor]:
        """Keep f of the cell."""
        z_BTD, f_BTD = torch.tanh(gates[0]), torch.sigmoid(gates[1])
        return f_BTD, (1 - f_BTD) * z_BTD

    def output(self, c_BTD: Tensor, x_BTD: Tensor, *gates: Tensor) -> Tensor:
        """Let o of the cell out."""
        return torch.sigmoid(gates[2]) * c_BTD


class MinLSTM(GatedScan):
    """h = f' ∘ h + i' ∘ h̃, f' + i' = 1, both from the input alone (Feng et al. 2024)."""

    def step_of(self, *gates: Tensor) -> tuple[Tensor, Tensor]:
        """Norm both gates to sum 1."""
        f_BTD, i_BTD = torch.sigmoid(gates[1]), torch.sigmoid(gates[2])
        sum_BTD = f_BTD + i_BTD
        return f_BTD / sum_BTD, i_BTD / sum_BTD * gates[0]

    def output(self, c_BTD: Tensor, x_BTD: Tensor, *gates: Tensor) -> Tensor:
        """Return the state."""
        return c_BTD

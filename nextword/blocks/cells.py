"""Recurrent cells as the slides write them: one step, one equation a line.

[IITD-1 "A Simple RNN Language Model"], [IITD-2 "LSTM", "Gated Recurrent Units (GRUs)"], Feng et al. 2024.
The decks swap W and U, so a weight is named by where it comes from and where it goes. Gates of one cell are
stacked in one matrix. `blocks.recurrent` has the same cells with the same weights for all positions at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from nextword.blocks.roles import Role, Roles, roles_of
from nextword.core.catalog import find

CellState = tuple[Tensor, ...]  # (h_BH,) or, for the LSTM, (h_BH, c_BH): what a row remembers
Gates = dict[str, Tensor]


class Cell(nn.Module):
    """What all cells have. A new cell needs `gates` and `forward`; its weights are made in ``__init__``.

    The matrices from one state to the next have `Role.RECURRENT`: weight drop applies to these.
    """

    roles: ClassVar[Roles] = {}
    parts: int = 1  # tensors of a state

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.inputs, self.hidden = inputs, hidden

    def gates(self, x_BE: Tensor, state: CellState) -> Gates:
        """Return everything computed on the way to the next state, by its name on the slide."""
        raise NotImplementedError

    def forward(self, x_BE: Tensor, state: CellState) -> CellState:
        """Read one token in each row: one step of the recurrence."""
        raise NotImplementedError

    def reset(self) -> None:
        """Draw new random weights: Xavier for inputs, orthogonal from state to state."""
        for name, role in roles_of(self).items():
            weight = self.get_parameter(name)
            if role == Role.BIAS:
                nn.init.zeros_(weight)
            else:
                for block in torch.split(weight, self.hidden):  # gate by gate
                    (nn.init.orthogonal_ if role == Role.RECURRENT else nn.init.xavier_uniform_)(block)

    def read(
        self, x_TBE: Tensor, state: CellState, lengths_B: Tensor | None = None
    ) -> tuple[Tensor, CellState]:
        """Run the forward pass step by step: ``h_TBH`` and the state after each row's last real token."""
        return by_steps(self, x_TBE, state, lengths_B)


def by_steps(
    step: Callable[[Tensor, CellState], CellState], x_TBE: Tensor, state: CellState, lengths_B: Tensor | None
) -> tuple[Tensor, CellState]:
    """Read position by position: ``h_TBH`` and the state after each row's last real token."""
    outputs = []
    for t, x_BE in enumerate(x_TBE.unbind(0)):
        after = step(x_BE, state)
        outputs.append(after[0])
        if lengths_B is not None:
            goes_on_B1 = (t < lengths_B)[:, None]
            parts = zip(after, state, strict=True)
            after = tuple(torch.where(goes_on_B1, new_BH, old_BH) for new_BH, old_BH in parts)
        state = after
    return torch.stack(outputs), state


class Activation(NamedTuple):
    """A function of the vanilla RNN, and its slope as a function of its value; the slot "cell_activation"."""

    value: Callable[[Tensor], Tensor]
    value_: Callable[[Tensor], Tensor]  # in place
    slope: Callable[[Tensor], Tensor]


TANH = Activation(torch.tanh, torch.tanh_, lambda h: torch.addcmul(torch.ones_like(h), h, h, value=-1))
"""From -1 to 1."""
RELU = Activation(torch.relu, torch.relu_, lambda h: (h > 0).to(h.dtype))
"""max(0, u): the state can grow without limit."""
SIGMOID = Activation(torch.sigmoid, torch.sigmoid_, lambda h: torch.addcmul(h, h, h, value=-1))
"""From 0 to 1."""
IDENTITY = Activation(lambda a: a, lambda a: a, torch.ones_like)
"""u itself: a linear network."""


class RNNCell(Cell):
    """The vanilla recurrent network (Elman 1990). [IITD-1 "A Simple RNN Language Model"]"""

    roles: ClassVar[Roles] = {"h_to_h": Role.RECURRENT}

    def __init__(self, inputs: int, hidden: int, activation: str = "tanh") -> None:
        super().__init__(inputs, hidden)
        self.activation: Activation = find("cell_activation", activation)
        self.x_to_h = nn.Linear(inputs, hidden)
        self.h_to_h = nn.Linear(hidden, hidden, bias=False)
        self.reset()

    def gates(self, x_BE: Tensor, state: CellState) -> Gates:
        """Return the sum before σ, as there are no gates."""
        (h_BH,) = state
        return {"sum": self.h_to_h(h_BH) + self.x_to_h(x_BE)}

    def forward(self, x_BE: Tensor, state: CellState) -> CellState:
        """Compute h(t) = σ(W_h h(t-1) + W_e e(t) + b_1)."""
        return (self.activation.value(self.gates(x_BE, state)["sum"]),)


class LSTMCell(Cell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997). [IITD-2 "LSTM"]

    The order i, f, c̃, o in the stacked matrices is that of torch. The forget gate starts open (bias 1;
    Jozefowicz et al. 2015), so that a new network remembers.
    """

    roles: ClassVar[Roles] = {"h_to_gates": Role.RECURRENT}
    parts = 2

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x_to_gates = nn.Linear(inputs, 4 * hidden)
        self.h_to_gates = nn.Linear(hidden, 4 * hidden, bias=False)
        self.reset()

    def reset(self) -> None:
        """Draw new weights as all cells do, and open the forget gate."""
        super().reset()
        with torch.no_grad():
            self.x_to_gates.bias[self.hidden : 2 * self.hidden] = 1.0

    def gates(self, x_BE: Tensor, state: CellState) -> Gates:
        """Return the gates input, forget and output, and the new content; 1 is open, 0 closed."""
        h_BH, _ = state
        i, f, new, o = (self.h_to_gates(h_BH) + self.x_to_gates(x_BE)).chunk(4, dim=-1)
        return {
            "forget": torch.sigmoid(f),  # f(t) = σ(W_f h(t-1) + U_f x(t) + b_f)
            "input": torch.sigmoid(i),  # i(t) = σ(W_i h(t-1) + U_i x(t) + b_i)
            "output": torch.sigmoid(o),  # o(t) = σ(W_o h(t-1) + U_o x(t) + b_o)
            "new": torch.tanh(new),  # c̃(t) = tanh(W_c h(t-1) + U_c x(t) + b_c)
        }

    def forward(self, x_BE: Tensor, state: CellState) -> CellState:
        """Compute c(t), partly forgotten and partly new, and the h(t) read from it."""
        gates = self.gates(x_BE, state)
        f, i, o, new = gates["forget"], gates["input"], gates["output"], gates["new"]
        c_BH = f * state[1] + i * new  # c(t) = f(t) ∘ c(t-1) + i(t) ∘ c̃(t)
        h_BH = o * torch.tanh(c_BH)  # h(t) = o(t) ∘ tanh c(t)
        return h_BH, c_BH


class GRUCell(Cell):
    """The gated recurrent unit as on the slide (Cho et al. 2014). [IITD-2 "Gated Recurrent Units (GRUs)"]

    It resets h before the product. Libraries reset after it (`TorchGRUCell`), and call z what is 1 - u here.
    """

    roles: ClassVar[Roles] = {"h_to_gates": Role.RECURRENT, "h_to_new": Role.RECURRENT}

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x_to_all = nn.Linear(inputs, 3 * hidden)  # to r, u and h̃
        self.h_to_gates = nn.Linear(hidden, 2 * hidden, bias=False)  # to r and u
        self.h_to_new = nn.Linear(hidden, hidden, bias=False)  # what the reset gate lets through, to h̃
        self.reset()

    def gates(self, x_BE: Tensor, state: CellState) -> Gates:
        """Return the gates update and reset, and the new content."""
        (h_BH,) = state
        from_x_r, from_x_u, from_x_new = self.x_to_all(x_BE).chunk(3, dim=-1)
        from_h_r, from_h_u = self.h_to_gates(h_BH).chunk(2, dim=-1)
        u = torch.sigmoid(from_h_u + from_x_u)  # u(t) = σ(W_u h(t-1) + U_u x(t) + b_u)
        r = torch.sigmoid(from_h_r + from_x_r)  # r(t) = σ(W_r h(t-1) + U_r x(t) + b_r)
        # h̃(t) = tanh(W_h (r(t) ∘ h(t-1)) + U_h x(t) + b_h)
        new = torch.tanh(self.h_to_new(r * h_BH) + from_x_new)
        return {"update": u, "reset": r, "new": new}

    def forward(self, x_BE: Tensor, state: CellState) -> CellState:
        """Compute h(t) = (1 - u(t)) ∘ h(t-1) + u(t) ∘ h̃(t)."""
        gates = self.gates(x_BE, state)
        return ((1 - gates["update"]) * state[0] + gates["update"] * gates["new"],)


class TorchGRUCell(Cell):
    """The gated recurrent unit as libraries have it: the reset gate acts after the product."""

    roles: ClassVar[Roles] = {"h_to_gates": Role.RECURRENT}

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x_to_gates = nn.Linear(inputs, 3 * hidden)  # to r, z and n
        self.h_to_gates = nn.Linear(hidden, 3 * hidden)
        self.reset()

    def gates(self, x_BE: Tensor, state: CellState) -> Gates:
        """Return the gates reset and keep (the library's z), and the new content."""
        from_x_r, from_x_z, from_x_n = self.x_to_gates(x_BE).chunk(3, dim=-1)
        from_h_r, from_h_z, from_h_n = self.h_to_gates(state[0]).chunk(3, dim=-1)
        r = torch.sigmoid(from_x_r + from_h_r)  # r = σ(W_ir x + b_ir + W_hr h + b_hr)
        z = torch.sigmoid(from_x_z + from_h_z)  # z = σ(W_iz x + b_iz + W_hz h + b_hz)
        n = torch.tanh(from_x_n + r * from_h_n)  # n = tanh(W_in x + b_in + r ∘ (W_hn h + b_hn))
        return {"reset": r, "keep": z, "new": n}

    def forward(self, x_BE: Tensor, state: CellState) -> CellState:
        """Compute h' = (1 - z) ∘ n + z ∘ h."""
        gates = self.gates(x_BE, state)
        return ((1 - gates["keep"]) * gates["new"] + gates["keep"] * state[0],)


class MinGRUCell(Cell):
    """The minimal GRU ("Were RNNs All We Needed?", Feng et al. 2024): its gate depends on the token alone.

    So every position's gate is known at once, and the states follow by a scan. The new content is the paper's
    plain one, linear: its g keeps h positive for a scan in log space, which `blocks.scan` does without.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.x_to_all = nn.Linear(inputs, 2 * hidden)  # to z and h̃
        self.reset()

    def gates(self, x_BE: Tensor, state: CellState) -> Gates:
        """Return the gate update and the new content."""
        z, new = self.x_to_all(x_BE).chunk(2, dim=-1)
        return {"update": torch.sigmoid(z), "new": new}  # z(t) = σ(W_z x(t)), h̃(t) = W_h x(t)

    def forward(self, x_BE: Tensor, state: CellState) -> CellState:
        """Compute h(t) = (1 - z(t)) ∘ h(t-1) + z(t) ∘ h̃(t)."""
        gates = self.gates(x_BE, state)
        return ((1 - gates["update"]) * state[0] + gates["update"] * gates["new"],)

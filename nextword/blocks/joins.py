"""How the output of a layer joins the stream that is its input.

[IITD-2 "Is Vanishing/Exploding Gradient Just an RNN Problem?"]: direct connections let the gradient flow.
"Residual connections" [MAUSAM "Transformers (2017) Made Many Changes at Once!"]. A join is made from the
width of the stream and the width of the output. The stream may be more than one vector a token (all earlier
outputs, several lanes): a join says how it begins, what a layer reads of it and what remains at the end. The
slot "connection" has the joins of stacked recurrent layers, "join" those of the parts of a Transformer.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nextword.blocks.cost import Cost, linear, weights
from nextword.blocks.roles import Role, Roles


class Join(nn.Module):
    """What all joins have; ``width`` is that of the stream after the layer."""

    lanes: ClassVar[int] = 1  # streams side by side

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.width = outputs

    @staticmethod
    def cost(width: int, tokens: int) -> Cost:
        """Count what a join of this width has and does; most have nothing."""
        return Cost()

    def begin(self, x_BTD: Tensor) -> Tensor:
        """Return the stream before the first layer."""
        return x_BTD

    def look(self, stream: Tensor) -> Tensor:
        """Return the input of a layer."""
        return stream

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Return the stream joined with the layer's output."""
        raise NotImplementedError

    def end(self, stream: Tensor) -> Tensor:
        """Return what remains of the stream after the last layer."""
        return stream


class Plain(Join):
    """x ← f(x): deep stacks of these hardly learn."""

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Return the output alone."""
        return y_BTH


class Residual(Join):
    """x ← x + f(x): the identity connection preserves information by default (He et al. 2015)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.fit = fitting(inputs, outputs)

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Add the output."""
        return self.fit(stream) + y_BTH


class Dense(Join):
    """x ← [x; f(x)]: every layer sees the outputs of all earlier layers (DenseNet, Huang et al. 2017)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.width = inputs + outputs

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Concatenate: the stream holds the outputs of all layers so far."""
        return torch.cat([stream, y_BTH], dim=-1)


class ReZero(Residual):
    """x ← x + α f(x), α = 0 at first: every layer begins as the identity (Bachlechner et al. 2020)."""

    roles: ClassVar[Roles] = {"alpha": Role.SCALE}

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.alpha = nn.Parameter(torch.zeros(()))

    @staticmethod
    def cost(width: int, tokens: int) -> Cost:
        """Count α."""
        return weights(1)

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Add α times the output."""
        return torch.addcmul(self.fit(stream), y_BTH, self.alpha.to(y_BTH.dtype))


class Highway(Residual):
    """x ← (1 - t) ∘ x + t ∘ f(x), t = σ(x W + b): the stream sets the gate (Srivastava et al. 2015)."""

    roles: ClassVar[Roles] = {"gate": Role.GATE}
    bias: ClassVar[float] = -1.0  # b of a new gate: most of the stream passes

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.gate = nn.Linear(inputs, outputs)
        nn.init.constant_(self.gate.bias, self.bias)

    @staticmethod
    def cost(width: int, tokens: int) -> Cost:
        """Count the gate."""
        return linear(width, width, tokens, bias=True)

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Interpolate stream and output element by element."""
        x_BTH: Tensor = self.fit(stream)
        t_BTH = torch.sigmoid(self.gate(stream))
        return torch.lerp(x_BTH, y_BTH.to(x_BTH.dtype), t_BTH.to(x_BTH.dtype))


class NarrowHighway(Highway):
    """A highway whose new gates are nearly closed, as between stacked recurrent layers."""

    bias = -2.0


class Fixup(Residual):
    """x ← x + s f(x + b), s = 1 and b = 0 at first: deep stacks without norms (Zhang et al. 2019).

    It belongs to ``init = "fixup"``, which sets the last matrix of every part to 0.
    """

    roles: ClassVar[Roles] = {"scale": Role.SCALE, "shift": Role.BIAS}

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.shift = nn.Parameter(torch.zeros(()))
        self.scale = nn.Parameter(torch.ones(()))

    @staticmethod
    def cost(width: int, tokens: int) -> Cost:
        """Count b and s."""
        return weights(2)

    def look(self, stream: Tensor) -> Tensor:
        """Add b."""
        return stream + self.shift

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Add s times the output."""
        return torch.addcmul(self.fit(stream), y_BTH, self.scale.to(y_BTH.dtype))


class LayerScale(Residual):
    """x ← x + γ ∘ f(x), γ = 0.1 at first, one number for each feature (Touvron et al. 2021)."""

    roles: ClassVar[Roles] = {"gain_D": Role.SCALE}

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.gain_D = nn.Parameter(torch.full((outputs,), 0.1))

    @staticmethod
    def cost(width: int, tokens: int) -> Cost:
        """Count γ."""
        return weights(width)

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Add γ times the output."""
        return torch.addcmul(self.fit(stream), y_BTH, self.gain_D.to(y_BTH.dtype))


class GRUGate(Residual):
    """x ← GRU(x, f(x)): r and u look at both, u says how much of x is replaced (Parisotto et al. 2020)."""

    roles: ClassVar[Roles] = {"gates": Role.GATE, "new_y": Role.GATE, "new_x": Role.GATE}
    bias: ClassVar[float] = -2.0  # of u at first: most of the stream passes

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.gates = nn.Linear(2 * outputs, 2 * outputs)
        self.new_y = nn.Linear(outputs, outputs)
        self.new_x = nn.Linear(outputs, outputs, bias=False)
        with torch.no_grad():
            self.gates.bias[outputs:] = self.bias

    @staticmethod
    def cost(width: int, tokens: int) -> Cost:
        """Count the gates and the candidate."""
        own, pair = linear(width, width, tokens), linear(2 * width, 2 * width, tokens, bias=True)
        return pair + own + own + weights(width)

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Replace a part of the stream by a candidate made of both."""
        x_BTH: Tensor = self.fit(stream)
        r_BTH, u_BTH = torch.sigmoid(self.gates(torch.cat([x_BTH, y_BTH], dim=-1))).chunk(2, dim=-1)
        new_BTH = torch.tanh(self.new_y(y_BTH) + self.new_x(r_BTH * x_BTH))
        return torch.lerp(x_BTH, new_BTH.to(x_BTH.dtype), u_BTH.to(x_BTH.dtype))


class UniversalGate(Residual):
    """x ← x + (1 - u) ∘ y + u ∘ c, y = f(x); u, r, c are sigmoids of normed x and y.

    The gates with which the table [MAUSAM] measured the Universal Transformer; c sees r ∘ x in place of x.
    The norms have no weights.
    """

    roles: ClassVar[Roles] = {"gates": Role.GATE, "new": Role.GATE}

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.gates = nn.Linear(2 * outputs, 2 * outputs)
        self.new = nn.Linear(2 * outputs, outputs)

    @staticmethod
    def cost(width: int, tokens: int) -> Cost:
        """Count three gates of two inputs."""
        return linear(2 * width, 3 * width, tokens, bias=True)

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Mix output and candidate, and add them to the stream."""
        x_BTH: Tensor = self.fit(stream)
        normed_BTH = _normed(y_BTH)
        both_BTG = torch.cat([_normed(x_BTH), normed_BTH], dim=-1)
        u_BTH, r_BTH = torch.sigmoid(self.gates(both_BTG)).chunk(2, dim=-1)
        both_BTG = torch.cat([_normed(r_BTH * x_BTH), normed_BTH], dim=-1)
        new_BTH = torch.sigmoid(self.new(both_BTG))
        return x_BTH + torch.lerp(y_BTH, new_BTH.to(y_BTH.dtype), u_BTH.to(y_BTH.dtype))


def fitting(inputs: int, outputs: int) -> nn.Module:
    """Return the identity where widths agree, else a projection, as He et al. do where they change."""
    return nn.Identity() if inputs == outputs else nn.Linear(inputs, outputs, bias=False)


def _normed(x_BTH: Tensor) -> Tensor:
    """Norm to mean 0 and variance 1, without weights."""
    return F.layer_norm(x_BTH, x_BTH.shape[-1:], eps=1e-6)

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

from nextword.blocks.roles import Role, Roles


class Join(nn.Module):
    """What all joins have; ``width`` is that of the stream after the layer."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.width = outputs

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

    def forward(self, stream: Tensor, y_BTH: Tensor) -> Tensor:
        """Interpolate stream and output element by element."""
        x_BTH: Tensor = self.fit(stream)
        t_BTH = torch.sigmoid(self.gate(stream))
        return torch.lerp(x_BTH, y_BTH.to(x_BTH.dtype), t_BTH.to(x_BTH.dtype))


class NarrowHighway(Highway):
    """A highway whose new gates are nearly closed, as between stacked recurrent layers."""

    bias = -2.0


def fitting(inputs: int, outputs: int) -> nn.Module:
    """Return the identity where widths agree, else a projection, as He et al. do where they change."""
    return nn.Identity() if inputs == outputs else nn.Linear(inputs, outputs, bias=False)

"""How the output of a part joins the stream it was read from: the slot "join".

"Residual connections" [MAUSAM "Transformers (2017) Made Many Changes at Once!"; He et al. 2016]. The stream
may be more than one vector a word (all earlier outputs, several lanes): a join says what a part reads of it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nextword.blocks.shape import Shape


class Residual(nn.Module):
    """x ← x + f(x). Also what the other joins do where they say nothing."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()

    def look(self, stream: Tensor) -> Tensor:
        """What a part reads."""
        return stream

    def forward(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """The stream with the part's output in it."""
        return stream + y_BTD


class Plain(Residual):
    """x ← f(x): deep stacks of these hardly learn."""

    def forward(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """The output alone."""
        return y_BTD


class ReZero(Residual):
    """x ← x + α f(x), α = 0 at first: every block begins as nothing (Bachlechner et al. 2020)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.alpha = nn.Parameter(torch.zeros(()))

    def forward(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """As much as α lets in."""
        return torch.addcmul(stream, y_BTD, self.alpha.to(y_BTD.dtype))


class Highway(Residual):
    """x ← (1 - t) ∘ x + t ∘ f(x), t = σ(x W + b): the stream says what passes (Srivastava et al. 2015)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.gate = nn.Linear(shape.width, shape.width)
        nn.init.constant_(self.gate.bias, -1.0)  # at first most of the stream passes

    def forward(self, stream: Tensor, y_BTD: Tensor) -> Tensor:
        """A mixture, number by number."""
        return torch.lerp(stream, y_BTD.to(stream.dtype), torch.sigmoid(self.gate(stream)).to(stream.dtype))

"""From the scores of attention to weights: the slot "weighing".

Plain softmax is fused with the products around it (`blocks.attention`); every other kind is a small class
that is given all scores, so that it costs their memory. A mask says which keys are seen.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.cost import Cost, Load, weights
from nextword.blocks.roles import Role, Roles
from nextword.blocks.shape import Shape


class Softmax(nn.Module):
    """Weights in proportion to exp(score). Also the default of other kinds."""

    fused: ClassVar[bool] = False

    def __init__(self, shape: Shape) -> None:
        super().__init__()

    def forward(self, scores_BNTS: Tensor, mask: Tensor | None) -> Tensor:
        """Return the weights of the keys that are seen."""
        return masked(scores_BNTS, mask).softmax(dim=-1)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count nothing."""
        return Cost()


class Fused(Softmax):
    """Softmax, computed together with the products around it."""

    fused = True


class SoftCap(Softmax):
    """Scores are bounded first: c tanh(score / c), c = 50 (Gemma 2)."""

    cap: ClassVar[float] = 50.0

    def forward(self, scores_BNTS: Tensor, mask: Tensor | None) -> Tensor:
        """Bound, then softmax."""
        return super().forward(self.cap * torch.tanh(scores_BNTS / self.cap), mask)


class OffByOne(Softmax):
    """exp(score) / (1 + Σ exp): a head may look at nothing (Miller 2023)."""

    def sink(self, scores_BNTS: Tensor) -> Tensor:
        """Return the score of nothing: 0."""
        return scores_BNTS.new_zeros(1, scores_BNTS.shape[1], 1, 1)

    def forward(self, scores_BNTS: Tensor, mask: Tensor | None) -> Tensor:
        """Softmax over the keys and nothing; the share of nothing is dropped."""
        scores_BNTS = masked(scores_BNTS, mask)
        sink_BNT1 = self.sink(scores_BNTS).expand(*scores_BNTS.shape[:3], 1)
        return torch.cat([scores_BNTS, sink_BNT1], dim=-1).softmax(dim=-1)[..., :-1]


class Sink(OffByOne):
    """The score of nothing is learned, one for each head: attention sinks (Xiao et al. 2024, gpt-oss)."""

    roles: ClassVar[Roles] = {"sink_N": Role.BIAS}

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.sink_N = nn.Parameter(torch.zeros(shape.heads))

    def sink(self, scores_BNTS: Tensor) -> Tensor:
        """Return the learned score."""
        return self.sink_N.view(1, -1, 1, 1)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count a number for each head."""
        return weights(shape.heads)


class TalkingHeads(Softmax):
    """Heads are mixed before and after the softmax by small matrices (Shazeer et al. 2020)."""

    roles: ClassVar[Roles] = {"before_NN": Role.MATRIX, "after_NN": Role.MATRIX}

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.before_NN = nn.Parameter(torch.eye(shape.heads))
        self.after_NN = nn.Parameter(torch.eye(shape.heads))

    def forward(self, scores_BNTS: Tensor, mask: Tensor | None) -> Tensor:
        """Mix, softmax, mix."""
        mixed_BNTS = torch.einsum("bnts,nm->bmts", scores_BNTS, self.before_NN)
        return torch.einsum("bnts,nm->bmts", super().forward(mixed_BNTS, mask), self.after_NN)

    @classmethod
    def cost(cls, shape: Shape, load: Load) -> Cost:
        """Count both matrices, applied to all pairs of tokens."""
        return Cost(2 * shape.heads**2, 2 * shape.heads**2 * load.tokens * load.length)


class Sigmoid(Softmax):
    """σ(score - log of the number of keys): weights that need not sum to 1 (Ramapuram et al. 2025)."""

    def forward(self, scores_BNTS: Tensor, mask: Tensor | None) -> Tensor:
        """Weigh every key by itself; the number is that of the keys a token sees."""
        scores_BNTS = masked(scores_BNTS, mask)
        seen_BNT1 = (~torch.isneginf(scores_BNTS)).sum(dim=-1, keepdim=True).clamp(min=1)
        return torch.sigmoid(scores_BNTS - seen_BNT1.to(scores_BNTS.dtype).log())


def masked(scores_BNTS: Tensor, mask: Tensor | None) -> Tensor:
    """Return the scores with -inf where a key is not seen; a mask of numbers is added."""
    if mask is None:
        return scores_BNTS
    if mask.dtype == torch.bool:
        return scores_BNTS.masked_fill(~mask, -torch.inf)
    return scores_BNTS + mask

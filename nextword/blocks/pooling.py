"""One vector for a sentence from the features of its words: last, max, mean or attention; slot "pooling".

"Sentence encoding: usually better, take the element-wise max or mean of all hidden states" [IITD-2, uses of
RNNs]; attention with a learned query: Lin et al. 2017, Yang et al. 2016. Padding is never looked at.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from nextword.blocks.roles import Role, Roles


def real_positions(h_BTD: Tensor, lengths_B: Tensor) -> Tensor:
    """Return ``real_BT1``: which positions hold a word; an empty row counts as one word of zeros."""
    T = h_BTD.shape[1]
    return (torch.arange(T, device=h_BTD.device) < lengths_B.clamp(min=1)[:, None])[..., None]


class Pooling(nn.Module):
    """What all kinds have: made of the size D of a feature."""

    def __init__(self, width: int) -> None:
        super().__init__()

    def weights(self, h_BTD: Tensor, lengths_B: Tensor) -> Tensor | None:
        """Return how much each word counts, ``weights_BT``, where the kind has weights."""
        return None

    def forward(self, h_BTD: Tensor, lengths_B: Tensor, last_BD: Tensor) -> Tensor:
        """Return ``v_BD``; ``last_BD``: the encoder's own summary, its last states."""
        raise NotImplementedError


class Last(Pooling):
    """The state after the last word (from the right: after the first)."""

    def forward(self, h_BTD: Tensor, lengths_B: Tensor, last_BD: Tensor) -> Tensor:
        """Return the last states."""
        return last_BD


class Max(Pooling):
    """The largest value of each feature."""

    def forward(self, h_BTD: Tensor, lengths_B: Tensor, last_BD: Tensor) -> Tensor:
        """Return max_t h(t)."""
        return h_BTD.masked_fill(~real_positions(h_BTD, lengths_B), -torch.inf).max(dim=1).values


class Mean(Pooling):
    """The mean of each feature."""

    def weights(self, h_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        """Return 1 / T for every word."""
        real_BT1 = real_positions(h_BTD, lengths_B).to(h_BTD.dtype)
        return (real_BT1 / real_BT1.sum(dim=1, keepdim=True))[..., 0]

    def forward(self, h_BTD: Tensor, lengths_B: Tensor, last_BD: Tensor) -> Tensor:
        """Return (1 / T) Σ h(t)."""
        real_BT1 = real_positions(h_BTD, lengths_B)
        total_BD = h_BTD.masked_fill(~real_BT1, 0.0).sum(dim=1)
        return total_BD / lengths_B.clamp(min=1)[:, None]


class Attention(Pooling):
    """Σ a(t) h(t), a = softmax(q · tanh(W h(t) + b)) with a learned query q."""

    roles: ClassVar[Roles] = {"query_D": Role.BIAS}

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.to_keys = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.to_keys.weight)
        nn.init.zeros_(self.to_keys.bias)
        self.query_D = nn.Parameter(torch.zeros(width))

    def weights(self, h_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        """Return a(t)."""
        scores_BT = torch.tanh(self.to_keys(h_BTD)).float() @ self.query_D
        scores_BT = scores_BT.masked_fill(~real_positions(h_BTD, lengths_B)[..., 0], -torch.inf)
        return scores_BT.softmax(dim=1)

    def forward(self, h_BTD: Tensor, lengths_B: Tensor, last_BD: Tensor) -> Tensor:
        """Return the weighted sum."""
        h_BTD = h_BTD.masked_fill(~real_positions(h_BTD, lengths_B), 0.0)
        return (self.weights(h_BTD, lengths_B)[:, None].to(h_BTD.dtype) @ h_BTD)[:, 0]
